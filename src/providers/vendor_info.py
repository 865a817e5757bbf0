"""What is told of a vendor before anything is asked: who it is, and how this daemon reaches it."""

from dataclasses import dataclass
from typing import Final, Literal

from pydantic import SecretStr

from .model_catalog import ProviderName


@dataclass(frozen=True, slots=True)
class VendorInfo:
    """One vendor, as its people call it."""

    name: ProviderName
    label: str
    """For people, such as ``Kimi (Moonshot)``."""
    key_setting: str
    """Where its API key is set."""
    lists_all: bool
    """Whether a model that it does not list cannot be asked (``listing.Listing``)."""


KIMI: Final = VendorInfo("kimi", "Kimi (Moonshot)", "KIMI_API_KEY", lists_all=True)
GLM: Final = VendorInfo("glm", "GLM (Zhipu)", "GLM_API_KEY", lists_all=False)

KIMI_BASE_URL: Final = "https://api.moonshot.ai/v1"
"""Moonshot's international platform; keys of platform.moonshot.cn need ``https://api.moonshot.cn/v1``."""
GLM_BASE_URL: Final = "https://open.bigmodel.cn/api/paas/v4"
"""Where both of the vendor's SDKs ask by default; keys of z.ai need ``https://api.z.ai/api/paas/v4``."""

KimiSdk = Literal["auto", "openai", "http"]
GlmSdk = Literal["auto", "zhipuai", "zai", "http"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorAccess:
    """How to reach one vendor."""

    api_key: SecretStr
    base_url: str
    limit: int
    """As many threads at most, where the SDK is synchronous. How many calls run at once is not decided here."""
    simulated: bool = False
    """Whether the simulator answers there: then no proxy of the environment stands between."""
