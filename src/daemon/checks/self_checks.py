"""The checks of the tool ``self-check`` inside the running daemon. Each function checks values passed to it. Pure."""

import datetime as dt
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from ...providers import BreakerState, Model
from .check_result import CheckResult

FREE_BYTES_WARN: Final = 1024**3
"""The default size limit of the audit trail."""
FREE_BYTES_FAIL: Final = 64 * 1024**2
"""Space for the database's log and one large answer."""
DRIFT_S: Final = 60.0
"""A larger change of the clock puts rows, days and budgets in the wrong place."""
EARLIEST: Final = dt.datetime(2025, 1, 1, tzinfo=dt.UTC).timestamp()
"""Earlier than the first release."""
BACKLOG: Final = 10_000
"""A working sender has fewer unsent calls than this."""


def as_data(check: CheckResult) -> dict[str, Any]:
    """A check as the tool returns it."""
    return {
        "check": check.name,
        "ok": check.status == "ok",
        "status": check.status,
        "message": check.message,
        "remedy": check.remedy,
    }


_OPERATOR_ONLY: Final = frozenset({"store", "journal", "disk", "audit", "tools", "budget"})
"""Checks whose messages have paths, texts of other systems, or information about other principals."""


def summary(check: CheckResult) -> CheckResult:
    """A check as principals without the operator right see it."""
    if check.name not in _OPERATOR_ONLY:
        return check
    if check.status == "ok":
        return CheckResult(check.name, check.status, "no problem found")
    return CheckResult(check.name, check.status, "a problem was found", "ask the operator, who sees the reason")


def store(problem: str | None, damage: str | None, *, dropped: int) -> CheckResult:
    """Whether the database accepts audit rows; ``problem`` is its error, ``damage`` describes its unreadable parts."""
    if damage:
        message, _, remedy = damage.rpartition(": ")
        return CheckResult("store", "fail", message, remedy)
    if problem:
        remedy = "free disk space, or fix the database file's permissions; local calls continue without audit rows"
        return CheckResult("store", "fail", f"the database cannot be written: {problem}", remedy)
    if dropped:
        return CheckResult(
            "store", "warn", f"{dropped} audit rows were lost since the start", "see the log for the reason"
        )
    return CheckResult("store", "ok", "a transaction was committed")


def journal(problem: str | None) -> CheckResult:
    """Whether calls of non-local tools can be journalled; ``problem`` is the error."""
    if problem:
        remedy = "free disk space, or repair the disk; until then only local tools run"
        return CheckResult("journal", "fail", f"a commit does not reach the disk: {problem}", remedy)
    return CheckResult("journal", "ok", "a commit was synced to the disk")


def provider(label: str, missing: str, state: BreakerState | None) -> CheckResult:
    """Whether a vendor is available: ``missing`` names a missing setting; otherwise ``state`` is the state of its
    circuit breaker."""
    if missing:
        return CheckResult(
            label, "warn", missing.partition(":")[0], missing.partition(": ")[2].removesuffix(".") or None
        )
    if state == "open":
        return CheckResult(
            label,
            "fail",
            "it failed several times in a row; its circuit breaker is open",
            "wait; it is retried automatically",
        )
    if state == "half-open":
        return CheckResult(
            label, "warn", "it failed several times in a row and is being retried", "send a call to test it"
        )
    return CheckResult(label, "ok", "configured; no repeated failures")


def disk(free: int | None) -> CheckResult:
    """Whether there is enough disk space; ``free`` is None if the system does not report it."""
    if free is None:
        return CheckResult(
            "disk", "warn", "the system does not report the free space", "check the state directory's disk"
        )
    message = f"{free / 1024**2:,.0f} MiB free on the database's disk"
    if free < FREE_BYTES_FAIL:
        return CheckResult("disk", "fail", message, "free disk space; calls that cannot be journalled are refused")
    if free < FREE_BYTES_WARN:
        return CheckResult("disk", "warn", message, "free disk space, or lower audit_keep_bytes")
    return CheckResult("disk", "ok", message)


def clock(now: float, *, expected: float, newest: float | None) -> CheckResult:
    """Whether the wall clock is right: ``expected`` is the time by the monotonic clock, ``newest`` the last call's.

    All in Unix seconds.
    """
    remedy = "set the machine's clock and enable NTP"
    if now < EARLIEST:
        return CheckResult("clock", "fail", f"it says {dt.datetime.fromtimestamp(now, dt.UTC):%Y-%m-%d}", remedy)
    if newest is not None and newest > now + DRIFT_S:
        return CheckResult("clock", "warn", f"the last call is dated {newest - now:.0f} s in the future", remedy)
    if abs(now - expected) > DRIFT_S:
        return CheckResult("clock", "warn", f"it changed by {now - expected:+.0f} s since the start", remedy)
    return CheckResult("clock", "ok", f"{dt.datetime.fromtimestamp(now, dt.UTC):%Y-%m-%d %H:%M:%S} UTC")


def audit(remote: Mapping[str, Any] | None, *, sent: bool) -> CheckResult:
    """Whether the audit trail reaches Supabase if it is ``sent``; ``remote`` is None if its state is unreadable."""
    if not sent:
        return CheckResult("audit", "ok", "rows stay in the local database; no Supabase project is configured")
    if remote is None:
        return CheckResult("audit", "warn", "the number of unsent calls is unknown", "fix the store first")
    backlog, error = remote.get("backlog") or 0, remote.get("last_error")
    if error:
        return CheckResult("audit", "warn", f"{backlog:,} calls are not sent: {error}", "run `toold doctor`")
    if backlog > BACKLOG:
        return CheckResult(
            "audit", "warn", f"{backlog:,} calls are not sent yet", "wait; if the number grows, check the network"
        )
    return CheckResult("audit", "ok", f"{backlog:,} calls are not sent yet")


def tools(problems: Collection[str]) -> CheckResult:
    """Whether all tools are loaded."""
    if problems:
        return CheckResult("tools", "warn", "; ".join(problems), "fix or remove them, and restart the daemon")
    return CheckResult("tools", "ok", "all are loaded")


def automatic_model() -> CheckResult:
    return CheckResult("default model", "ok", "auto: the cheapest suitable model of each call")


def default_model(model: Model | None, listed: bool | None) -> CheckResult:
    """Whether the default model is available."""
    if model is None:
        return CheckResult("default model", "fail", "no vendor is configured", "set a vendor's key")
    if listed is False:
        return CheckResult(
            "default model", "warn", f"{model.provider} does not list {model.id}", "set default_model to another model"
        )
    listing = "its vendor lists it" if listed else "its vendor's list is unknown"
    return CheckResult("default model", "ok", f"{model.id}; {listing}")


def budget(amounts: Mapping[str, float], spent: Mapping[str, float], models: Iterable[Model]) -> CheckResult:
    """Whether the day's budget is spent, and whether it covers every available model."""
    if not amounts:
        return CheckResult("budget", "ok", "not set")
    for currency, amount in amounts.items():
        if spent.get(currency, 0.0) >= amount:
            return CheckResult(
                "budget", "fail", f"today's {amount:g} {currency} are spent", "wait, or raise daily_budget"
            )
    prices = [model.price for model in models]
    unbounded = sorted({price.currency for price in prices if price and price.currency not in amounts})
    if unbounded:
        message = f"models are priced in {', '.join(unbounded)}, which the budget does not limit"
        return CheckResult("budget", "warn", message, f"add an amount in {', '.join(unbounded)} to daily_budget")
    if None in prices:
        message = "some models have no known price and count as free"
        return CheckResult("budget", "warn", message, "`listmodels` shows them; avoid them, or watch the vendor's bill")
    return CheckResult(
        "budget", "ok", ", ".join(f"{spent.get(c, 0.0):.4g} of {a:g} {c} spent" for c, a in amounts.items())
    )
