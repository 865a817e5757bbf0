"""Creates the configured providers, and records what is missing for the others."""

from dataclasses import dataclass, field, replace
from typing import Final

from pydantic import SecretStr

from ..providers import GLM, KIMI, Provider, VendorAccess, build_glm, build_kimi
from ..providers.simulator import SIMULATOR_KEY, Simulator
from .config.settings import Settings

VENDORS: Final = (KIMI, GLM)
_NO_KEY: Final = SecretStr("")
_THREADS: Final = 1024
"""The maximum number of threads of a synchronous SDK. They are created on demand; the provider limiter, whose limit a
reload can change, is the effective bound."""


@dataclass(frozen=True, slots=True)
class ConfiguredProviders:
    """The available vendors, and the unavailable ones."""

    providers: dict[str, Provider] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    """The concurrency limit of each available vendor."""
    absent: dict[str, str] = field(default_factory=dict)
    """What to set, for each unavailable vendor."""


def open_vendors(settings: Settings, simulator: Simulator | None) -> ConfiguredProviders:
    """A provider for each vendor: simulated if there is a simulator, else real if its key is set."""
    vendors = ConfiguredProviders()
    kimi = VendorAccess(api_key=settings.kimi_api_key or _NO_KEY, base_url=settings.kimi_base_url, limit=_THREADS)
    glm = VendorAccess(api_key=settings.glm_api_key or _NO_KEY, base_url=settings.glm_base_url, limit=_THREADS)
    if simulator is not None:
        kimi = _simulated(kimi, simulator.kimi_base_url)
        glm = _simulated(glm, simulator.glm_base_url)
    for vendor, access in ((KIMI, kimi), (GLM, glm)):
        if access.api_key is _NO_KEY:
            missing = (
                f"{vendor.label} is not configured: set {vendor.key_setting}, or {vendor.name}_api_key in toold.toml, "
                "and restart the daemon; with --simulate a local simulator answers."
            )
            vendors.absent[vendor.name] = missing
        else:
            vendors.limits[vendor.name] = concurrency(settings)[vendor.name]
    if KIMI.name in vendors.limits:
        vendors.providers[KIMI.name] = build_kimi(kimi, sdk=settings.kimi_sdk)
    if GLM.name in vendors.limits:
        vendors.providers[GLM.name] = build_glm(glm, sdk=settings.glm_sdk)
    return vendors


def concurrency(settings: Settings) -> dict[str, int]:
    """The concurrency limit of each vendor, available or not."""
    return {KIMI.name: settings.kimi_concurrency, GLM.name: settings.glm_concurrency}


def _simulated(access: VendorAccess, base_url: str) -> VendorAccess:
    return replace(access, api_key=SecretStr(SIMULATOR_KEY), base_url=base_url, simulated=True)
