"""The vendors, and how the daemon reaches them."""

from dataclasses import dataclass
from typing import Final, Literal

from pydantic import SecretStr

from .model_catalog import ProviderName


@dataclass(frozen=True, slots=True)
class VendorInfo:
    """A vendor."""

    name: ProviderName
    label: str
    """The display name, such as ``Kimi (Moonshot)``."""
    key_setting: str
    """The name of the setting for its API key."""
    lists_all: bool
    """Whether a model that it does not list is unavailable (``ModelListing``)."""


KIMI: Final = VendorInfo("kimi", "Kimi (Moonshot)", "KIMI_API_KEY", lists_all=True)
GLM: Final = VendorInfo("glm", "GLM (Zhipu)", "GLM_API_KEY", lists_all=False)

KIMI_BASE_URL: Final = "https://api.moonshot.ai/v1"
"""Moonshot's international platform. Keys from platform.moonshot.cn need ``https://api.moonshot.cn/v1``."""
GLM_BASE_URL: Final = "https://open.bigmodel.cn/api/paas/v4"
"""The default of both SDKs. Keys from z.ai need ``ZAI_BASE_URL``."""
ZAI_BASE_URL: Final = "https://api.z.ai/api/paas/v4"

KimiSdk = Literal["auto", "openai", "http"]
GlmSdk = Literal["auto", "zhipuai", "zai", "http"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorAccess:
    """The connection settings of one vendor."""

    api_key: SecretStr
    base_url: str
    limit: int
    """Maximum number of threads for a synchronous SDK. It does not limit concurrent calls."""
    simulated: bool = False
    """Whether ``base_url`` is the simulator's; proxies from the environment are then ignored."""
