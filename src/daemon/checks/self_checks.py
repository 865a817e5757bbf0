"""What ``self-check`` looks at from within the running daemon. Each function takes what was found, and judges it."""

import datetime as dt
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from ...providers import BreakerState, Model
from .check_result import CheckResult

ROOM_TO_WARN: Final = 1024**3
"""Bytes: as much as the audit may take by default."""
ROOM_TO_FAIL: Final = 64 * 1024**2
"""Bytes: the database's log and one large answer."""
DRIFT_S: Final = 60.0
"""A clock that was moved by so much puts rows, days and budgets where nobody looks for them."""
EARLIEST: Final = dt.datetime(2025, 1, 1, tzinfo=dt.UTC).timestamp()
"""No daemon of this kind ran before."""
BACKLOG: Final = 10_000
"""Calls: more than a sender that works leaves behind."""


def as_data(check: CheckResult) -> dict[str, Any]:
    """A check as the tool tells it."""
    return {
        "check": check.name,
        "ok": check.status == "ok",
        "status": check.status,
        "why": check.message,
        "what_to_do": check.remedy,
    }


def store(problem: str | None, damage: str | None, *, dropped: int) -> CheckResult:
    """Whether the database takes audit rows; ``problem`` is why it does not, in its own words, ``damage`` what of it
    cannot be read.
    """
    if damage:
        message, _, remedy = damage.rpartition(": ")
        return CheckResult("store", "fail", message, remedy)
    if problem:
        remedy = "free the disk, or mend the database file's permissions; local calls go on without audit rows"
        return CheckResult("store", "fail", f"the database cannot be written: {problem}", remedy)
    if dropped:
        return CheckResult(
            "store", "warn", f"{dropped} audit rows were lost since the start", "look for the reason in the log"
        )
    return CheckResult("store", "ok", "a transaction was committed")


def journal(problem: str | None) -> CheckResult:
    """Whether calls that reach out can be journalled; ``problem`` is why they cannot."""
    if problem:
        remedy = "free the disk, or mend its fault: until then only local tools are run"
        return CheckResult("journal", "fail", f"a commit does not reach the disk: {problem}", remedy)
    return CheckResult("journal", "ok", "a commit was synced to the disk")


def provider(label: str, missing: str, state: BreakerState | None) -> CheckResult:
    """Whether a vendor can be asked: what is ``missing``, or else how its breaker stands."""
    if missing:
        return CheckResult(
            label, "warn", missing.partition(":")[0], missing.partition(": ")[2].removesuffix(".") or None
        )
    if state == "open":
        return CheckResult(
            label, "fail", "it failed several times in a row and is not asked now", "wait: it is tried by itself"
        )
    if state == "half-open":
        return CheckResult(
            label, "warn", "it failed several times in a row and is being tried again", "send a call and see"
        )
    return CheckResult(label, "ok", "it is configured, and has not kept failing")


def disk(free: int | None) -> CheckResult:
    """Whether there is room for what is written down; None where the system does not say."""
    if free is None:
        return CheckResult(
            "disk", "warn", "the system does not say how much room is left", "look at the state directory's disk"
        )
    told = f"{free / 1024**2:,.0f} MiB are free where the database lies"
    if free < ROOM_TO_FAIL:
        return CheckResult("disk", "fail", told, "free some: calls that cannot be journalled are refused")
    if free < ROOM_TO_WARN:
        return CheckResult("disk", "warn", told, "free some, or lower audit_keep_bytes")
    return CheckResult("disk", "ok", told)


def clock(now: float, *, expected: float, newest: float | None) -> CheckResult:
    """Whether the wall clock can be believed: ``expected`` by the monotonic clock, ``newest`` is the last call's time.

    All in Unix seconds.
    """
    remedy = "set the machine's clock, and have it kept by NTP"
    if now < EARLIEST:
        return CheckResult("clock", "fail", f"it says {dt.datetime.fromtimestamp(now, dt.UTC):%Y-%m-%d}", remedy)
    if newest is not None and newest > now + DRIFT_S:
        return CheckResult("clock", "warn", f"calls are written down from {newest - now:.0f} s in the future", remedy)
    if abs(now - expected) > DRIFT_S:
        return CheckResult("clock", "warn", f"it was moved by {now - expected:+.0f} s since the start", remedy)
    return CheckResult("clock", "ok", f"{dt.datetime.fromtimestamp(now, dt.UTC):%Y-%m-%d %H:%M:%S} UTC")


def audit(remote: Mapping[str, Any] | None, *, sent: bool) -> CheckResult:
    """Whether the audit reaches Supabase, where it is to be ``sent``; ``remote`` is None where that cannot be read."""
    if not sent:
        return CheckResult("audit", "ok", "rows stay in the local database, as no Supabase project is set")
    if remote is None:
        return CheckResult("audit", "warn", "how many calls are still to send is not known", "see to the store first")
    backlog, error = remote.get("backlog") or 0, remote.get("last_error")
    if error:
        return CheckResult(
            "audit", "warn", f"{backlog:,} calls are not sent: {error}", "`toold doctor` says what is missing"
        )
    if backlog > BACKLOG:
        return CheckResult(
            "audit", "warn", f"{backlog:,} calls are still to send", "wait; if it grows look at the network"
        )
    return CheckResult("audit", "ok", f"{backlog:,} calls are still to send")


def tools(problems: Collection[str]) -> CheckResult:
    """Whether all tools could be loaded."""
    if problems:
        return CheckResult("tools", "warn", "; ".join(problems), "mend them, or remove them, and restart the daemon")
    return CheckResult("tools", "ok", "all could be loaded")


def default_model(model: Model | None, listed: bool | None) -> CheckResult:
    """Whether what is asked without a name can be asked."""
    if model is None:
        return CheckResult("default model", "fail", "no vendor can be asked", "set a vendor's key")
    if listed is False:
        return CheckResult(
            "default model", "warn", f"{model.provider} does not list {model.id}", "set default_model to another"
        )
    known = "its vendor lists it" if listed else "its vendor's list is not known"
    return CheckResult("default model", "ok", f"{model.id}; {known}")


def budget(amounts: Mapping[str, float], spent: Mapping[str, float], models: Iterable[Model]) -> CheckResult:
    """Whether the day's budget is spent, and whether it bounds every model that can be asked."""
    if not amounts:
        return CheckResult("budget", "ok", "none is set")
    for currency, amount in amounts.items():
        if spent.get(currency, 0.0) >= amount:
            return CheckResult(
                "budget", "fail", f"the {amount:g} {currency} of today are spent", "wait, or raise daily_budget"
            )
    prices = [model.price for model in models]
    unbounded = sorted({price.currency for price in prices if price and price.currency not in amounts})
    if unbounded:
        told = f"models are priced in {', '.join(unbounded)}, of which any amount may be spent"
        return CheckResult("budget", "warn", told, f"add an amount in {', '.join(unbounded)} to daily_budget")
    if None in prices:
        told = "some models have no known price: what they take counts as nothing"
        return CheckResult(
            "budget", "warn", told, "`listmodels` shows which; leave them out, or watch the vendor's bill"
        )
    return CheckResult(
        "budget", "ok", ", ".join(f"{spent.get(c, 0.0):.4g} of {a:g} {c} are spent" for c, a in amounts.items())
    )
