"""The settings of one vendor, in one form for all vendors."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import SecretStr

from ...providers import Dialect, VendorInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorSettings:
    """A vendor that the daemon knows, with or without a key."""

    info: VendorInfo
    api_key: SecretStr | None
    """None: the vendor is not available, unless the simulator answers for it."""
    key_origin: str
    """Where the key is from, or why it is missing."""
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
    """A configured provider's; None for Kimi and GLM."""
    daily_budget: Mapping[str, float] = field(default_factory=dict)
    """Amounts by currency, for this vendor alone."""
    prefix: str
    """The prefix of its settings' names, such as ``kimi_``."""

    def setting(self, part: str) -> str:
        """Returns the name of one of its settings, such as ``kimi_api_key``."""
        return f"{self.prefix}{part}"
