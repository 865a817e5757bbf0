"""The published schema: it matches the code, records conform to it, and it is strict."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from baseline.record import Call, CallTimings, Money, Record, Tokens
from baseline.schema import schema

SCHEMA = Path(__file__).parents[2] / "scripts/baseline_collection/record.schema.json"


@pytest.fixture
def record(make_record: Callable[..., Record], make_call: Callable[..., Call]) -> Record:
    reported = CallTimings(daemon_ms=1.5, queue_ms=0.1, tool_ms=1.0, provider_ms=0.5)
    good = make_call(
        timings=reported, tokens=Tokens(input=3, output=4), cost=Money(amount=0.1, currency="USD"), model="m"
    )
    bad = make_call(iteration=2, status="error", error_code="TIMEOUT", error="too late")
    return make_record([good, bad])


def plain(record: Record) -> Any:
    """The JSON of the file."""
    return json.loads(msgspec.json.encode(record))


def test_published_schema_matches_the_code() -> None:
    """record.schema.json matches the code; docs/baselines.md has the command that regenerates it."""
    assert json.loads(SCHEMA.read_text("utf-8")) == schema()


def test_record_conforms_to_the_schema(record: Record) -> None:
    """A record with successes and failures is valid by the published schema."""
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text("utf-8"))).validate(plain(record))


@pytest.mark.parametrize(
    ("field", "value"),
    [("format", 2), ("id", None), ("calls", [{"tool_name": "echo"}]), ("simulated", "no"), ("contention", 2)],
)
def test_invalid_record_is_refused(record: Record, field: str, value: Any) -> None:
    """A document with a missing or malformed field is invalid."""
    broken = plain(record) | {field: value}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema()).validate(broken)


def test_fields_are_described() -> None:
    """The schema has the descriptions from the code."""
    assert "Warm-up calls" in schema()["$defs"]["Call"]["description"]
    assert "before it was sent" in schema()["$defs"]["Call"]["properties"]["late_ms"]["description"]
