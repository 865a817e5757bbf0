"""Creates the configured providers, and records which settings the others lack."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic import SecretStr

from ..providers import GLM, KIMI, Provider, VendorAccess, VendorInfo, build_compatible, build_glm, build_kimi
from ..providers.simulator import SIMULATOR_KEY, Simulator
from .config.settings import Settings
from .config.vendor_settings import VendorSettings

_BUILDERS: Final[Mapping[str, Callable[[VendorAccess, str], Provider]]] = {KIMI.name: build_kimi, GLM.name: build_glm}
_NO_KEY: Final = SecretStr("")
_THREADS: Final = 1024
"""The maximum number of threads of a synchronous SDK. They are created on demand; the provider limiter, whose limit a
reload can change, is the effective bound."""


@dataclass(frozen=True, slots=True)
class ConfiguredProviders:
    """The available vendors, and the unavailable ones."""

    infos: tuple[VendorInfo, ...]
    """All vendors, in the order of the settings."""
    providers: dict[str, Provider] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    """The concurrency limit of each available vendor."""
    absent: dict[str, str] = field(default_factory=dict)
    """The missing setting of each unavailable vendor."""


def open_vendors(settings: Settings, simulator: Simulator | None) -> ConfiguredProviders:
    """A provider for each vendor: simulated if there is a simulator, otherwise real if its key is set."""
    vendors = ConfiguredProviders(tuple(vendor.info for vendor in settings.vendors))
    for vendor in settings.vendors:
        name = vendor.info.name
        if vendor.api_key is None and simulator is None:
            vendors.absent[name] = _missing(vendor)
            continue
        vendors.limits[name] = vendor.max_in_flight
        access = _access(vendor, simulator)
        if vendor.dialect is None:
            vendors.providers[name] = _BUILDERS[name](access, vendor.sdk)
        else:
            vendors.providers[name] = build_compatible(vendor.info, access, vendor.sdk, dialect=vendor.dialect)
    return vendors


def concurrency(settings: Settings) -> dict[str, int]:
    """The concurrency limit of each vendor, available or not."""
    return {vendor.info.name: vendor.max_in_flight for vendor in settings.vendors}


def daily_budgets(settings: Settings) -> dict[str, Mapping[str, float]]:
    """The daily budgets of the vendors that have a separate budget."""
    return {vendor.info.name: vendor.daily_budget for vendor in settings.vendors if vendor.daily_budget}


def _access(vendor: VendorSettings, simulator: Simulator | None) -> VendorAccess:
    access = VendorAccess(
        api_key=vendor.api_key or _NO_KEY, base_url=vendor.base_url, limit=_THREADS, headers=vendor.headers
    )
    if simulator is None:
        return access
    base_url = simulator.base_url(vendor.info.name)
    return replace(access, api_key=SecretStr(SIMULATOR_KEY), base_url=base_url, simulated=True)


def _missing(vendor: VendorSettings) -> str:
    if vendor.dialect is not None:
        return f"The provider {vendor.info.label} has no key: {vendor.key_origin}; restart the daemon with it."
    return (
        f"{vendor.info.label} is not configured: set {vendor.info.key_setting}, or {vendor.setting('api_key')} in "
        "toold.toml, and restart the daemon; with simulate = true, or TOOLD_SIMULATE=true, a local simulator answers."
    )
