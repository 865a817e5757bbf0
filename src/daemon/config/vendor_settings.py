"""The settings of one vendor, in one form for all vendors."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import SecretStr

from ...providers import KIMI, Dialect, VendorInfo
from .provider_settings import ConfiguredKey, ProviderSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorSettings:
    """A vendor that the daemon knows, with or without a key."""

    info: VendorInfo
    api_key: SecretStr | None
    """If None, the vendor is not available, unless the simulator answers for it."""
    key_origin: str
    """The origin of the key, or the reason why it is missing."""
    base_url: str
    sdk: str
    max_in_flight: int
    """The maximum number of concurrent requests."""
    allowed_models: tuple[str, ...] = ()
    """Ids of models; empty if the operator allows all."""
    fallback: tuple[str, ...] = ()
    """Names of models to ask if this vendor fails."""
    headers: Mapping[str, str] = field(default_factory=dict)
    dialect: Dialect | None = None
    """The settings of a configured provider; None for Kimi and GLM."""
    daily_budget: Mapping[str, float] = field(default_factory=dict)
    """Amounts by currency, for this vendor alone."""
    prefix: str
    """The prefix of its settings' names, such as ``kimi_``."""

    def setting(self, part: str) -> str:
        """Returns the name of one of its settings, such as ``kimi_api_key``."""
        return f"{self.prefix}{part}"


def configured_vendor(name: str, table: ProviderSettings, key: ConfiguredKey | None) -> VendorSettings:
    """The settings of the vendor in ``[providers.NAME]``, with the key that was read from its location."""
    return VendorSettings(
        info=VendorInfo(
            name=name,
            label=name,
            key_setting=f"api_key in [providers.{name}]",
            lists_all=False,
            base_url=table.url,
            attempt_timeout_s=table.timeout_s,
            concurrency=table.max_in_flight,
            sdks=KIMI.sdks,
        ),
        api_key=key.key if key else None,
        key_origin=key.origin if key else "",
        base_url=table.url,
        sdk=table.sdk,
        max_in_flight=table.max_in_flight,
        headers=table.headers,
        dialect=table.dialect,
        daily_budget=table.daily_budget,
        fallback=table.fallback,
        prefix=f"providers.{name}.",
    )
