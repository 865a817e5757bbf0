"""Makes vendor requests within a deadline, and maps their failures to ``CallError``."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from ..protocol.error_codes import ProviderError, ServiceUnavailableError
from ..protocol.json_text import InvalidJsonError, parse_json
from . import vendor_errors
from .completion_parsing import FilteredError, InterruptedAnswerError
from .response_values import InvalidResponseError
from .transport_loader import TransportLoader
from .vendor_info import VendorInfo
from .vendor_transport import ApiAnswer, ApiRequest, AttemptPlan, plan_attempts

T = TypeVar("T")


@dataclass(slots=True)
class ExchangeWatch:
    """The deadline and last activity of one call, by the loop's clock."""

    clock: Callable[[], float]
    deadline: float
    active_at: float
    """The time at which data last arrived from the vendor; initially the start of the call."""

    @property
    def remaining_s(self) -> float:
        return self.deadline - self.clock()

    def note_activity(self) -> None:
        self.active_at = self.clock()


@asynccontextmanager
async def exchange_deadline(vendor: VendorInfo, timeout_s: float) -> AsyncIterator[ExchangeWatch]:
    """Limits the block to ``timeout_s`` seconds, and converts timeouts and invalid responses to ``CallError``."""
    clock = asyncio.get_running_loop().time
    now = clock()
    watch = ExchangeWatch(clock, now + timeout_s, now)
    try:
        async with asyncio.timeout_at(watch.deadline):
            yield watch
    except TimeoutError as error:
        raise vendor_errors.timed_out(vendor, timeout_s, silent_s=clock() - watch.active_at) from error
    except InvalidResponseError as error:
        raise vendor_errors.not_understood(vendor, str(error)) from error
    except InterruptedAnswerError as error:
        raise ServiceUnavailableError(
            f"{vendor.label} interrupted its answer before the end.", executed="maybe"
        ) from error
    except FilteredError as error:
        raise ProviderError(
            f"{vendor.label} withheld its answer as unsafe; rephrase the request.", executed="yes"
        ) from error


class VendorExchange:
    """Requests to one vendor other than completions."""

    def __init__(self, loader: TransportLoader) -> None:
        self._loader = loader
        self.vendor = loader.vendor

    async def send(self, request: ApiRequest, *, timeout_s: float, attempt_s: float | None = None) -> ApiAnswer:
        """Sends one request and reads the whole response, within ``timeout_s`` seconds for all attempts together and
        ``attempt_s`` for each (None: the vendor's default).

        An upload is never retried, because a retry could create a duplicate.

        Raises:
            CallError: a subclass for the vendor's failure, as for completions.
        """
        async with exchange_deadline(self.vendor, timeout_s) as watch:
            transport = await self._loader.transport()
            remaining_s = watch.remaining_s
            if request.upload is not None:
                return await transport.send(request, AttemptPlan(remaining_s, retries=0))
            return await transport.send(request, plan_attempts(remaining_s, attempt_s or self.vendor.attempt_timeout_s))

    async def ask(self, request: ApiRequest, read: Callable[[Any], T], *, timeout_s: float) -> T:
        """Sends one request and parses its JSON response with ``read``.

        Raises:
            CallError: as raised by ``send``, or ProviderError if the response is not JSON or ``read`` rejects it.
        """
        answer = await self.send(request, timeout_s=timeout_s)
        try:
            return read(parse_json(answer.content))
        except InvalidResponseError as error:
            raise vendor_errors.not_understood(self.vendor, str(error)) from error
        except InvalidJsonError as error:
            raise vendor_errors.not_json(self.vendor, error) from error
