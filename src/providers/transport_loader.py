"""Loads the vendor transport of a provider on first use."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Final

import structlog

from ..protocol.error_codes import CallError, ServiceUnavailableError
from .vendor_info import VendorAccess, VendorInfo
from .vendor_transport import VendorTransport

_log = structlog.get_logger(__name__)

_IMPORTING: Final = threading.Lock()
"""SDKs are imported one at a time, because two threads in the circular imports of a shared package may see it
half-initialized and fail.
"""


@dataclass(frozen=True, slots=True)
class TransportChoice:
    """A possible transport: its package, and the function that opens it."""

    package: str
    """The package's name for ``pip``."""
    module: str
    open: Callable[[VendorInfo, VendorAccess], VendorTransport]
    """Runs in a thread, because importing an SDK takes up to two seconds. Raises if the import fails."""

    @property
    def installed(self) -> bool:
        return find_spec(self.module) is not None

    @property
    def name(self) -> str:
        return f"{self.package} {version(self.package)}"


class TransportLoader:
    """Loads the first transport to one vendor that can be opened."""

    def __init__(self, vendor: VendorInfo, access: VendorAccess, choices: Sequence[TransportChoice]) -> None:
        """``choices`` are in order of preference; those not installed are skipped."""
        self.vendor = vendor
        self.access = access
        self._choices = [choice for choice in choices if choice.installed]
        self._packages = " or ".join(choice.package for choice in choices)
        self.name = self._choices[0].name if self._choices else f"{self._packages} (not installed)"
        """The name of the current or expected transport, for display."""
        self._task: asyncio.Task[VendorTransport] | None = None

    def __repr__(self) -> str:
        return f"<TransportLoader to {self.vendor.name} over {self.name}>"

    async def transport(self) -> VendorTransport:
        """Returns the transport, opening it on first use. A cancelled caller does not stop the opening for others.

        Raises:
            ServiceUnavailableError: none of the packages can be imported.
        """
        if self._task is None:
            self._task = asyncio.create_task(self._open_first(), name=f"open {self.vendor.name}")
        return await asyncio.shield(self._task)

    async def close(self) -> None:
        """Closes the transport if it was opened. The next use opens it again."""
        if self._task is None:
            return
        task, self._task = self._task, None
        try:
            transport = await task
        except CallError:
            return  # it was never opened
        await transport.close()

    async def _open_first(self) -> VendorTransport:
        for choice in self._choices:
            try:
                transport = await asyncio.to_thread(self._open, choice)
            except Exception as error:  # noqa: BLE001 - a broken package may raise anything; try the next transport
                _log.warning(
                    "SDK cannot be imported", provider=self.vendor.name, package=choice.package, error=repr(error)
                )
                continue
            self.name = transport.name
            return transport
        raise ServiceUnavailableError(
            f"{self.vendor.label} needs the package {self._packages}, which is not installed or cannot be imported."
        )

    def _open(self, choice: TransportChoice) -> VendorTransport:
        with _IMPORTING:
            return choice.open(self.vendor, self.access)
