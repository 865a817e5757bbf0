"""The doctor's check of traces: whether the collector accepts them."""

from collections.abc import Mapping
from typing import Final

from ...tools import SecretUnavailableError
from ...version import install_extra
from ..config.settings import Settings
from .check_result import CheckResult

COLLECTOR_TIMEOUT_S: Final = 5.0


async def collector(settings: Settings, env: Mapping[str, str]) -> list[CheckResult]:
    """Whether the collector accepts an empty request. No check without a collector."""
    if settings.otel is None:
        return []
    try:
        from ..spans.collector_client import (  # noqa: PLC0415 - needs an extra
            CollectorClient,
            CollectorFailure,
        )

        headers = settings.otel.read_headers(env)
    except ImportError as error:
        return [CheckResult("traces", "fail", f"the package {error.name} is not installed", install_extra("otel"))]
    except SecretUnavailableError as error:
        return [CheckResult("traces", "fail", f"headers: {error}", "set it, or change the headers of [otel]")]
    url = settings.otel.traces_url
    client = CollectorClient(url, headers)
    outcome = await client.export(b"", COLLECTOR_TIMEOUT_S)
    await client.close()
    if not isinstance(outcome, CollectorFailure):
        return [CheckResult("traces", "ok", f"{url} accepts spans, content {settings.otel.content}")]
    problem = f"{url}: {outcome.reason}"
    if outcome.retryable:
        return [CheckResult("traces", "warn", problem, "start the collector, or check the endpoint of [otel]")]
    return [CheckResult("traces", "fail", problem, "check [otel] and the collector")]
