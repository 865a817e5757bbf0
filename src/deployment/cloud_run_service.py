"""The objects of Cloud Run's and Secret Manager's APIs that a deployment creates and reads. Pure."""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from ..protocol.error_codes import ToolExecutionError
from .deploy_request import DeployPlan
from .deploy_settings import CloudRunSettings

JOB_LABEL: Final = "toold-job"
"""The label of objects that a job creates. Objects without this label and the job's id are not changed or removed."""
INVOKER: Final = "roles/run.invoker"
ACCESSOR: Final = "roles/secretmanager.secretAccessor"
ALL_USERS: Final = "allUsers"
_OPERATION: Final = re.compile(
    r"projects/[A-Za-z0-9._:-]{1,100}/locations/[a-z0-9-]{1,63}/operations/[A-Za-z0-9._-]{1,200}"
)
"""The format of names of operations, from the documentation of version 2 of Cloud Run's API."""


def service_body(plan: DeployPlan, cloud: CloudRunSettings, job_id: str) -> dict[str, Any]:
    """The body of ``projects.locations.services.create`` of version 2."""
    container = {
        "image": plan.image,
        "ports": [{"containerPort": plan.port}],
        "resources": {"limits": {"cpu": plan.cpu, "memory": plan.memory}},
        "env": _env(plan, cloud),
    }
    template: dict[str, Any] = {
        "containers": [container],
        "scaling": {"minInstanceCount": plan.min_instances, "maxInstanceCount": plan.max_instances},
    }
    if cloud.account is not None:
        template["serviceAccount"] = cloud.account
    return {"labels": {JOB_LABEL: job_id}, "ingress": "INGRESS_TRAFFIC_ALL", "template": template}


def _env(plan: DeployPlan, cloud: CloudRunSettings) -> list[dict[str, Any]]:
    """The variables of cs-agent-service, the predecessor's container. Variables of the settings take precedence."""
    own = {
        "AGENT_NAME": plan.agent_name,
        "PROMPT_REF": plan.prompt_ref,
        "DEFAULT_MODEL": plan.default_model,
        "AGENT_ID": plan.agent_id,
        "REGISTRY_URL": plan.registry_url,
        "LITELLM_URL": None if cloud.litellm is None else cloud.litellm.url,
    }
    values = {**{name: value for name, value in own.items() if value is not None}, **cloud.env}
    env: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in values.items()]
    if cloud.litellm is not None and "LITELLM_API_KEY" not in values:
        source = {"secretKeyRef": {"secret": plan.secret_id, "version": "latest"}}
        env.append({"name": "LITELLM_API_KEY", "valueSource": source})
    return env


def secret_body(job_id: str) -> dict[str, Any]:
    """The body of ``projects.secrets.create``."""
    return {"labels": {JOB_LABEL: job_id}, "replication": {"automatic": {}}}


def is_of_job(resource: Mapping[str, Any], job_id: str) -> bool:
    """Whether the job created the resource."""
    labels = resource.get("labels")
    return isinstance(labels, Mapping) and labels.get(JOB_LABEL) == job_id


def readiness(service: Mapping[str, Any]) -> tuple[Literal["ready", "waiting", "failed"], str]:
    """Whether the service runs, and the reason if it does not."""
    condition = service.get("terminalCondition")
    condition = condition if isinstance(condition, Mapping) else {}
    message = str(condition.get("message") or "no reason was given")[:500]
    match condition.get("state"):
        case "CONDITION_SUCCEEDED":
            return "ready", ""
        case "CONDITION_FAILED" if service.get("reconciling") is not True:
            return "failed", message
    return "waiting", message


def operation_name(operation: Mapping[str, Any]) -> str:
    """The name of a long-running operation, which is part of a path.

    Raises:
        ToolExecutionError: the operation has no name.
    """
    name = operation.get("name")
    if not isinstance(name, str) or not _OPERATION.fullmatch(name):
        raise ToolExecutionError("Cloud Run's answer is not an operation with a name.", executed="maybe")
    return name


def with_member(policy: Mapping[str, Any], role: str, member: str) -> dict[str, Any] | None:
    """The IAM policy with this role for the member; None if the member already has the role.

    Raises:
        ToolExecutionError: the policy has another form. It must not be written back, because that would remove grants.
    """
    raw = policy.get("bindings", [])
    if not isinstance(raw, list) or not all(map(_is_binding, raw)):
        raise ToolExecutionError("The access policy has a form that toold does not know; it was not changed.")
    bindings = [dict(each) for each in raw]
    for binding in bindings:
        # A binding with a condition does not always grant the role.
        if binding.get("role") == role and "condition" not in binding:
            members = list(binding.get("members") or ())
            if member in members:
                return None
            binding["members"] = [*members, member]
            return {**policy, "bindings": bindings}
    return {**policy, "bindings": [*bindings, {"role": role, "members": [member]}]}


def _is_binding(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("members", []), list)


def reader_of(secret: Mapping[str, Any], cloud: CloudRunSettings) -> str | None:
    """The member that reads the secret: the containers' account. The name of the default account contains the project's
    number, which is also in the secret's name.
    """
    if cloud.account is not None:
        return f"serviceAccount:{cloud.account}"
    number = str(secret.get("name", "")).split("/")[1:2]
    if not number or not number[0].isdecimal():
        return None
    return f"serviceAccount:{number[0]}-compute@developer.gserviceaccount.com"
