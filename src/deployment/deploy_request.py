"""The request for a deployment, in its two forms, and the plan that is made from it. Pure."""

import re
from typing import Annotated, Any, Final, Self

import msgspec
from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from ..protocol.error_codes import InvalidArgumentsError
from ..tools import Arguments
from .deploy_settings import DeploySettings, TargetName

TARGETS: Final[tuple[TargetName, ...]] = ("here", "cloud-run")
MAX_NAME_CHARS: Final = 49
"""The maximum length of a service's name. Cloud Run allows fewer than 50 characters."""
DEFAULT_PORT: Final = 9100
"""The port of the predecessor's containers."""

_Id = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$")]
_CONTAINER_ONLY: Final = ("image", "cpu", "memory", "port", "min_instances", "max_instances", "allow_public_access")
"""Fields that have no meaning for an agent that this daemon hosts."""


class DeployArguments(Arguments):
    """A deployment of a prompt and a model, or of a registry's agent."""

    customer_id: _Id = Field(description="The agent's owner; the service's name begins with it.")
    agent_name: _Id | None = Field(default=None, description="The name of an agent of one prompt.")
    prompt_ref: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        default=None, description="The name of the agent's prompt at the prompt servers."
    )
    default_model: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    agent_id: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        default=None, description="Instead of agent_name and prompt_ref: the id of an agent of a registry."
    )
    registry_url: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None = Field(
        default=None, description="The registry; default: the registry of the settings."
    )
    target: TargetName | None = Field(default=None, description="Default: the target of the settings.")
    image: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = None
    cpu: Annotated[str, StringConstraints(pattern=r"^([1-9][0-9]?|0\.[0-9]{1,2}|[1-9][0-9]{1,4}m)$")] = "1"
    memory: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,6}(Mi|Gi|M|G)$")] = "512Mi"
    port: Annotated[int, Field(ge=1, le=65_535)] = DEFAULT_PORT
    min_instances: Annotated[int, Field(ge=0, le=1000)] = 0
    max_instances: Annotated[int, Field(ge=1, le=1000)] = 10
    allow_public_access: bool = False

    @model_validator(mode="after")
    def _check_form(self) -> Self:
        if (self.agent_id is None) == (self.agent_name is None):
            raise PydanticCustomError("deploy", "name either agent_name (with prompt_ref) or agent_id")
        if self.agent_name is not None and self.prompt_ref is None:
            raise PydanticCustomError("deploy", "agent_name needs prompt_ref, the name of the agent's prompt")
        if self.agent_id is not None and self.prompt_ref is not None:
            raise PydanticCustomError("deploy", "agent_id has its prompts in the registry; omit prompt_ref")
        if self.agent_id is None and self.registry_url is not None:
            raise PydanticCustomError("deploy", "registry_url needs agent_id, an agent of the registry")
        if self.min_instances > self.max_instances:
            raise PydanticCustomError("deploy", "min_instances must be at most max_instances")
        return self


class DeployPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The parts to deploy, and their names. The plan is stored, so that everything can be removed later."""

    service_name: str
    customer_id: str
    target: TargetName
    agent_name: str | None = None
    prompt_ref: str | None = None
    default_model: str | None = None
    agent_id: str | None = None
    registry_url: str | None = None
    image: str | None = None
    cpu: str = "1"
    memory: str = "512Mi"
    port: int = DEFAULT_PORT
    min_instances: int = 0
    max_instances: int = 10
    allow_public_access: bool = False
    project: str | None = None
    region: str | None = None
    has_key: bool = False
    """Whether the container gets a key at LiteLLM."""
    ignored: tuple[str, ...] = ()
    """The fields of the request that have no meaning for the target."""

    @property
    def secret_id(self) -> str:
        """The id of the secret with the container's key at LiteLLM."""
        return f"{self.service_name}-litellm-key"


def plan_of(arguments: DeployArguments, settings: DeploySettings, registry_url: str | None) -> DeployPlan:
    """The plan of a request; ``registry_url`` is the URL in the settings.

    Raises:
        InvalidArgumentsError: a field does not fit the settings.
    """
    target = arguments.target or settings.target
    fields = arguments.model_dump(exclude={"target"})
    plan: dict[str, Any] = {**fields, "service_name": service_name(arguments), "target": target}
    if target == "here":
        plan["ignored"] = tuple(name for name in _CONTAINER_ONLY if name in arguments.model_fields_set)
    else:
        cloud = settings.cloud_run
        if cloud is None:
            raise _invalid("target", "cloud-run is not configured; the operator writes [deploy.cloud_run]")
        plan |= {"image": arguments.image or cloud.image, "project": cloud.project, "region": cloud.region}
        plan["has_key"] = cloud.litellm is not None
        if plan["image"] is None:
            raise _invalid("image", "is required: [deploy.cloud_run] has no image")
    if arguments.agent_id is not None:
        plan["registry_url"] = _registry_url(arguments.registry_url, settings, registry_url)
    return DeployPlan(**plan)


def service_name(arguments: DeployArguments) -> str:
    """``Acme Inc`` and ``research`` → ``acme-inc-research``.

    Raises:
        InvalidArgumentsError: the name is too long, or does not begin with a letter.
    """
    second = arguments.agent_name or arguments.agent_id or ""
    name = re.sub(r"[^a-z0-9]+", "-", f"{arguments.customer_id}-{second}".lower()).strip("-")
    if len(name) > MAX_NAME_CHARS:
        field = "agent_name" if arguments.agent_name else "agent_id"
        why = f"makes the service name {name[:60]!r}, which has {len(name)} characters; at most {MAX_NAME_CHARS}"
        raise _invalid(field, why)
    if not name[:1].isalpha():
        raise _invalid("customer_id", "must begin with a letter, because the service name must")
    return name


def _registry_url(named: str | None, settings: DeploySettings, configured: str | None) -> str:
    allowed = [url.rstrip("/") for url in (configured, *settings.registries) if url is not None]
    if named is None:
        if configured is None:
            raise _invalid("registry_url", "is required: there is no [registry]")
        return allowed[0]
    if named.rstrip("/") not in allowed:
        raise _invalid("registry_url", "is not [registry] url, nor in registries of [deploy]; the operator can add it")
    return named.rstrip("/")


def _invalid(field: str, problem: str) -> InvalidArgumentsError:
    return InvalidArgumentsError.content_free(f"{field} {problem}.", details={"fields": {field: problem}})
