"""A vendor's requests within their time, and what their failures mean to the caller."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from ..protocol.error_codes import ProviderError, ServiceUnavailableError
from . import vendor_errors
from .completion_parsing import BrokenOffError, FilteredError, NotUnderstoodError
from .model_catalog import ATTEMPT_TIMEOUT_S
from .transport_loader import TransportLoader
from .vendor_info import VendorInfo
from .vendor_transport import ApiAnswer, ApiRequest, AttemptPlan, plan_attempts

T = TypeVar("T")


@dataclass(slots=True)
class ExchangeWatch:
    """The time of one call, in instants of the loop's clock."""

    clock: Callable[[], float]
    deadline: float
    heard_at: float
    """When something last came from the vendor, or the call began."""

    @property
    def left_s(self) -> float:
        return self.deadline - self.clock()

    def heard(self) -> None:
        self.heard_at = self.clock()


@asynccontextmanager
async def within(vendor: VendorInfo, timeout_s: float) -> AsyncIterator[ExchangeWatch]:
    """Bound the block to ``timeout_s`` seconds, and raise ``CallError`` for what its answer lacks."""
    clock = asyncio.get_running_loop().time
    now = clock()
    watch = ExchangeWatch(clock, now + timeout_s, now)
    try:
        async with asyncio.timeout_at(watch.deadline):
            yield watch
    except TimeoutError as error:
        raise vendor_errors.timed_out(vendor, timeout_s, silent_s=clock() - watch.heard_at) from error
    except NotUnderstoodError as error:
        raise vendor_errors.not_understood(vendor, str(error)) from error
    except BrokenOffError as error:
        raise ServiceUnavailableError(
            f"{vendor.label} broke off its answer before it was finished.", executed="maybe"
        ) from error
    except FilteredError as error:
        raise ProviderError(
            f"{vendor.label} withheld its answer as unsafe; reword the request.", executed="yes"
        ) from error


class VendorExchange:
    """Requests to one vendor that are no completions."""

    def __init__(self, opening: TransportLoader) -> None:
        self._opening = opening
        self.vendor = opening.vendor

    async def send(self, request: ApiRequest, *, timeout_s: float) -> ApiAnswer:
        """One request and its whole answer, within ``timeout_s`` seconds for all attempts together.

        An upload is tried once, however long it takes: twice tried it may be there twice.

        Raises:
            CallError: a subclass by what the vendor said, as with completions.
        """
        async with within(self.vendor, timeout_s) as watch:
            road = await self._opening.road()
            left_s = watch.left_s
            if request.upload is not None:
                return await road.send(request, AttemptPlan(left_s, retries=0))
            return await road.send(request, plan_attempts(left_s, ATTEMPT_TIMEOUT_S[self.vendor.name]))

    async def ask(self, request: ApiRequest, read: Callable[[Any], T], *, timeout_s: float) -> T:
        """One request whose answer is JSON, as ``read`` understands it.

        Raises:
            CallError: as ``send``; ProviderError where the answer is not JSON, or ``read`` raised NotUnderstoodError.
        """
        answer = await self.send(request, timeout_s=timeout_s)
        try:
            return read(json.loads(answer.content))
        except NotUnderstoodError as error:
            raise vendor_errors.not_understood(self.vendor, str(error)) from error
        except ValueError as error:
            raise vendor_errors.not_understood(self.vendor, "it is not JSON") from error
