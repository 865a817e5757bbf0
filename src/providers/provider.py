"""A provider: checks the question, finds its road, keeps the deadline, reads the answer."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Final, Protocol

import structlog

from ..protocol.errors import CallError, ProviderError, ServiceUnavailableError
from . import failures
from .answer import Assembly, BrokenOffError, FilteredError, NotUnderstoodError, read_answer
from .completion import Completion, CompletionRequest, Delta, OnDelta
from .question import Body, check
from .road import Road, plan_attempts
from .vendor import Access, Vendor

_log = structlog.get_logger(__name__)

_IMPORTING: Final = threading.Lock()
"""One SDK is imported at a time: where two threads meet in the circular imports of a package that both SDKs need,
either may find half of it and fail."""


class MakeBody(Protocol):
    """The vendor's form of a question."""

    def __call__(self, request: CompletionRequest, *, stream: bool) -> Body: ...


@dataclass(frozen=True, slots=True)
class RoadChoice:
    """A road that may be taken: which package it needs, and how it is opened once that is imported."""

    package: str
    """What is imported; named as in ``pip``."""
    module: str
    open: Callable[[Vendor, Access], Road]
    """Runs in a thread, since an SDK takes up to two seconds to import. Raises where that fails."""

    @property
    def installed(self) -> bool:
        return find_spec(self.module) is not None

    @property
    def name(self) -> str:
        return f"{self.package} {version(self.package)}"


class VendorProvider:
    """A ``Provider`` for either vendor: what they differ in is handed in."""

    def __init__(self, vendor: Vendor, access: Access, make_body: MakeBody, choices: Sequence[RoadChoice]) -> None:
        """``choices`` in the order of preference; one that is not installed is passed over."""
        self.name: str = vendor.name
        self.label = vendor.label
        self.simulated = access.simulated
        self._vendor = vendor
        self._access = access
        self._make_body = make_body
        self._choices = [choice for choice in choices if choice.installed]
        self._wanted = " or ".join(choice.package for choice in choices)
        self.road = self._choices[0].name if self._choices else f"{self._wanted} (not installed)"
        self._opening: asyncio.Task[Road] | None = None

    def __repr__(self) -> str:
        return f"<VendorProvider {self.name} over {self.road}{' (simulated)' if self.simulated else ''}>"

    async def complete(
        self, request: CompletionRequest, *, timeout_s: float, on_delta: OnDelta | None = None
    ) -> Completion:
        check(request)
        body = self._make_body(request, stream=on_delta is not None)
        clock = asyncio.get_running_loop().time
        heard_at = clock()
        deadline = heard_at + timeout_s
        try:
            async with asyncio.timeout_at(deadline):
                road = await self._open_road()
                attempts = plan_attempts(deadline - clock(), request.model.attempt_timeout_s)
                if on_delta is None:
                    return read_answer(await road.ask(body, attempts), request.model)
                assembly = Assembly(request.model)

                def read(chunk: Any) -> Delta | None:
                    nonlocal heard_at
                    heard_at = clock()
                    return assembly.add(chunk)

                await road.stream(body, attempts, read, on_delta)
                return assembly.completion()
        except TimeoutError as error:
            raise failures.timed_out(self._vendor, timeout_s, silent_s=clock() - heard_at) from error
        except NotUnderstoodError as error:
            raise failures.not_understood(self._vendor, str(error)) from error
        except BrokenOffError as error:
            raise ServiceUnavailableError(
                f"{self.label} broke off its answer before it was finished.", executed="maybe"
            ) from error
        except FilteredError as error:
            raise ProviderError(
                f"{self.label} withheld its answer as unsafe; reword the request.", executed="yes"
            ) from error

    async def warm_up(self) -> None:
        try:
            await self._open_road()
        except CallError as error:
            _log.warning("provider cannot be opened", provider=self.name, error=error.message)

    async def close(self) -> None:
        if self._opening is None:
            return
        opening, self._opening = self._opening, None
        try:
            road = await opening
        except CallError:
            return  # it was never opened
        await road.close()

    async def _open_road(self) -> Road:
        """The road, opened by whoever asks first; a caller that goes away does not stop it for the others."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._open_first(), name=f"open {self.name}")
        return await asyncio.shield(self._opening)

    async def _open_first(self) -> Road:
        for choice in self._choices:
            try:
                road = await asyncio.to_thread(self._open, choice)
            except Exception as error:  # noqa: BLE001 - a broken package raises what it likes; the next road may do
                _log.warning("SDK cannot be imported", provider=self.name, package=choice.package, error=repr(error))
                continue
            self.road = road.name
            return road
        raise ServiceUnavailableError(
            f"{self.label} needs the package {self._wanted}, which is not installed or cannot be imported."
        )

    def _open(self, choice: RoadChoice) -> Road:
        with _IMPORTING:
            return choice.open(self._vendor, self._access)
