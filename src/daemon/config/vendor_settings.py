"""The settings of one vendor, in one form for all vendors."""

from dataclasses import dataclass

from pydantic import SecretStr

from ...providers import VendorInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorSettings:
    """A vendor that the daemon knows, with or without a key."""

    info: VendorInfo
    api_key: SecretStr | None
    """None: the vendor is not available, unless the simulator answers for it."""
    base_url: str
    sdk: str
    max_in_flight: int
    """The maximum number of concurrent requests."""
    allowed_models: tuple[str, ...] = ()
    """Ids of models; empty if the operator allows all."""
    prefix: str
    """The prefix of its settings' names, such as ``kimi_``."""

    def setting(self, part: str) -> str:
        """Returns the name of one of its settings, such as ``kimi_api_key``."""
        return f"{self.prefix}{part}"
