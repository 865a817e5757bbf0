"""Deployments of agents: the requests, the phases that carry them out, and the jobs that run the phases.

The daemon's wiring uses this package, and adds its tools to the catalog. A job is a detached call, and each phase is a
child call. The package must not know transports, sessions, limits on calls or SQL. From `sources/`, it uses only
`json_server.py` and the types of settings; from `agent_registry/`, its client.
"""

from .deploy_phase import CHECK_PHASE, DeployPhase, DeployTarget
from .deploy_request import TARGETS, DeployArguments, DeployPlan
from .deploy_settings import DeploySettings, DeploySettingsError, anchored_deploy, read_deploy
from .deploy_tools import DEPLOY_TOOL, UNDEPLOY_TOOL, deploy_tools
from .deployment_records import DEPLOYMENTS_DIRECTORY, Deployment, DeploymentRecords
from .deployment_service import AgentHosting, DeploymentService

__all__ = [
    "CHECK_PHASE",
    "DEPLOYMENTS_DIRECTORY",
    "DEPLOY_TOOL",
    "TARGETS",
    "UNDEPLOY_TOOL",
    "AgentHosting",
    "DeployArguments",
    "DeployPhase",
    "DeployPlan",
    "DeploySettings",
    "DeploySettingsError",
    "DeployTarget",
    "Deployment",
    "DeploymentRecords",
    "DeploymentService",
    "anchored_deploy",
    "deploy_tools",
    "read_deploy",
]
