"""The verdicts of ``self-check``, from values alone."""

import datetime as dt
from typing import Any

import pytest
from toold.daemon.checks import self_checks
from toold.daemon.checks.check_result import CheckResult
from toold.providers import Model, ModelCatalog, ModelPrice

NOW = dt.datetime(2026, 5, 1, tzinfo=dt.UTC).timestamp()
MODEL = ModelCatalog.load().default("kimi")


def model(currency: Any) -> Model:
    price = ModelPrice(currency, 1.0, 1.0) if currency else None
    return Model("m", "kimi", 1000, "https://example.com", dt.date(2026, 1, 1), price=price)


@pytest.mark.parametrize(
    ("check", "status", "says"),
    [
        (self_checks.store(None, None, dropped=0), "ok", "committed"),
        (self_checks.store("disk full", None, dropped=0), "fail", "disk full"),
        (self_checks.store(None, "it is damaged: repair it", dropped=0), "fail", "it is damaged"),
        (self_checks.store(None, None, dropped=3), "warn", "3 audit rows were lost"),
        (self_checks.journal(None), "ok", "synced"),
        (self_checks.journal("disk full"), "fail", "disk full"),
        (self_checks.provider("Kimi", "", "closed"), "ok", "configured"),
        (self_checks.provider("Kimi", "", "half-open"), "warn", "being retried"),
        (self_checks.provider("Kimi", "", "open"), "fail", "circuit breaker is open"),
        (self_checks.provider("Kimi", "Kimi is not configured: set KIMI_API_KEY.", None), "warn", "not configured"),
        (self_checks.disk(None), "warn", "does not report"),
        (self_checks.disk(10 * 1024**3), "ok", "10,240 MiB"),
        (self_checks.disk(500 * 1024**2), "warn", "500 MiB"),
        (self_checks.disk(1024**2), "fail", "1 MiB"),
        (self_checks.clock(NOW, expected=NOW + 1, newest=NOW - 5), "ok", "2026-05-01 00:00:00 UTC"),
        (self_checks.clock(NOW, expected=NOW, newest=None), "ok", "2026-05-01"),
        (self_checks.clock(NOW, expected=NOW - 7200, newest=None), "warn", "changed by +7200 s"),
        (self_checks.clock(NOW, expected=NOW, newest=NOW + 7200), "warn", "7200 s in the future"),
        (self_checks.clock(0.0, expected=0.0, newest=None), "fail", "1970-01-01"),
        (self_checks.audit(None, sent=False), "ok", "local database"),
        (self_checks.audit(None, sent=True), "warn", "unknown"),
        (self_checks.audit({"backlog": 5, "last_error": None}, sent=True), "ok", "5 calls"),
        (self_checks.audit({"backlog": 5, "last_error": "HTTP 503"}, sent=True), "warn", "HTTP 503"),
        (self_checks.audit({"backlog": 10**6, "last_error": None}, sent=True), "warn", "1,000,000 calls"),
        (self_checks.tools([]), "ok", "all"),
        (self_checks.tools(["x was omitted"]), "warn", "x was omitted"),
        (self_checks.default_model(MODEL, listed=True), "ok", MODEL.id),
        (self_checks.default_model(MODEL, None), "ok", "unknown"),
        (self_checks.default_model(MODEL, listed=False), "warn", "does not list"),
        (self_checks.default_model(None, None), "fail", "no vendor"),
        (self_checks.budget({}, {}, []), "ok", "not set"),
        (self_checks.budget({"USD": 5.0}, {"USD": 1.25}, [model("USD")]), "ok", "1.25 of 5 USD"),
        (self_checks.budget({"USD": 5.0}, {"USD": 5.0}, []), "fail", "today's 5 USD are spent"),
        (self_checks.budget({"USD": 5.0}, {}, [model("CNY"), model(None)]), "warn", "priced in CNY"),
        (self_checks.budget({"USD": 5.0}, {}, [model("USD"), model(None)]), "warn", "no known price"),
    ],
)
def test_each_verdict_says_why_and_what_to_do(check: CheckResult, status: str, says: str) -> None:
    """Every problem has a remedy; an ``ok`` check needs none."""
    data = self_checks.as_data(check)
    assert (data["status"], data["ok"]) == (status, status == "ok")
    assert says in data["message"]
    assert bool(data["remedy"]) == (status != "ok")


def test_a_missing_key_is_what_to_set() -> None:
    """The sentence of the provider is split at its colon."""
    check = self_checks.provider("Kimi", "Kimi is not configured: set KIMI_API_KEY, or use --simulate.", None)
    assert (check.message, check.remedy) == ("Kimi is not configured", "set KIMI_API_KEY, or use --simulate")
