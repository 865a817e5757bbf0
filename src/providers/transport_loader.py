"""Which road a provider takes, opened by whoever asks first."""

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
"""One SDK is imported at a time: where two threads meet in the circular imports of a package that both SDKs need,
either may find half of it and fail."""


@dataclass(frozen=True, slots=True)
class TransportChoice:
    """A road that may be taken: which package it needs, and how it is opened once that is imported."""

    package: str
    """What is imported; named as in ``pip``."""
    module: str
    open: Callable[[VendorInfo, VendorAccess], VendorTransport]
    """Runs in a thread, since an SDK takes up to two seconds to import. Raises where that fails."""

    @property
    def installed(self) -> bool:
        return find_spec(self.module) is not None

    @property
    def name(self) -> str:
        return f"{self.package} {version(self.package)}"


class TransportLoader:
    """The way to one vendor: the first of several roads that can be opened."""

    def __init__(self, vendor: VendorInfo, access: VendorAccess, choices: Sequence[TransportChoice]) -> None:
        """``choices`` in the order of preference; one that is not installed is passed over."""
        self.vendor = vendor
        self.access = access
        self._choices = [choice for choice in choices if choice.installed]
        self._wanted = " or ".join(choice.package for choice in choices)
        self.name = self._choices[0].name if self._choices else f"{self._wanted} (not installed)"
        """Of the road that is taken, or will be; for people."""
        self._task: asyncio.Task[VendorTransport] | None = None

    def __repr__(self) -> str:
        return f"<TransportLoader to {self.vendor.name} over {self.name}>"

    async def road(self) -> VendorTransport:
        """The road; a caller that goes away does not stop its opening for the others.

        Raises:
            ServiceUnavailableError: no package that is needed can be imported.
        """
        if self._task is None:
            self._task = asyncio.create_task(self._open_first(), name=f"open {self.vendor.name}")
        return await asyncio.shield(self._task)

    async def close(self) -> None:
        """Close the road, if it was opened; the next who asks opens it anew."""
        if self._task is None:
            return
        task, self._task = self._task, None
        try:
            road = await task
        except CallError:
            return  # it was never opened
        await road.close()

    async def _open_first(self) -> VendorTransport:
        for choice in self._choices:
            try:
                road = await asyncio.to_thread(self._open, choice)
            except Exception as error:  # noqa: BLE001 - a broken package raises what it likes; the next road may do
                _log.warning(
                    "SDK cannot be imported", provider=self.vendor.name, package=choice.package, error=repr(error)
                )
                continue
            self.name = road.name
            return road
        raise ServiceUnavailableError(
            f"{self.vendor.label} needs the package {self._wanted}, which is not installed or cannot be imported."
        )

    def _open(self, choice: TransportChoice) -> VendorTransport:
        with _IMPORTING:
            return choice.open(self.vendor, self.access)
