"""The vendors, and how the daemon reaches them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import SecretStr

KimiSdk = Literal["auto", "openai", "http"]
GlmSdk = Literal["auto", "zhipuai", "zai", "http"]


@dataclass(frozen=True, slots=True)
class SdkPackage:
    """The package of an SDK."""

    distribution: str
    """The package's name for ``pip``."""
    extra: str
    """The extra of toold that installs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorInfo:
    """A vendor, and the defaults of its settings."""

    name: str
    """The name of the vendor's provider, and the ``provider`` of its models."""
    label: str
    """The display name, such as ``Kimi (Moonshot)``."""
    key_setting: str
    """The name of the setting for the API key."""
    lists_all: bool
    """Whether unlisted models are unavailable (``ModelListing``)."""
    base_url: str
    attempt_timeout_s: float
    """The timeout of one attempt, unless the model has one."""
    concurrency: int
    """The maximum number of concurrent requests."""
    sdks: Mapping[str, SdkPackage] = field(default_factory=dict)
    """The SDKs by their names in settings, in order of preference. Plain HTTP needs none."""


KIMI: Final = VendorInfo(
    name="kimi",
    label="Kimi (Moonshot)",
    key_setting="KIMI_API_KEY",
    lists_all=True,
    base_url="https://api.moonshot.ai/v1",  # the international platform; docs/providers.md has the other one
    attempt_timeout_s=25.0,
    concurrency=6,
    sdks={"openai": SdkPackage("openai", extra="kimi")},
)
GLM: Final = VendorInfo(
    name="glm",
    label="GLM (Zhipu)",
    key_setting="GLM_API_KEY",
    lists_all=False,
    base_url="https://open.bigmodel.cn/api/paas/v4",  # the default of both SDKs; keys from z.ai need the next one
    attempt_timeout_s=30.0,
    concurrency=4,
    sdks={"zhipuai": SdkPackage("zhipuai", extra="glm"), "zai": SdkPackage("zai-sdk", extra="zai")},
)
ZAI_BASE_URL: Final = "https://api.z.ai/api/paas/v4"


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorAccess:
    """The connection settings of one vendor."""

    api_key: SecretStr
    base_url: str
    limit: int
    """Maximum number of threads for a synchronous SDK. It does not limit concurrent calls."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers of each request."""
    simulated: bool = False
    """Whether ``base_url`` is the simulator's; proxies from the environment are then ignored."""
