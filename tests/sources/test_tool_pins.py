"""Pins: approved definitions, and their comparison with a listing."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.sources.pin_storage import PinFiles
from toold.sources.tool_pins import (
    PinConflictError,
    Pins,
    ToolPin,
    approved_pins,
    compare_listing,
    merged_approval,
)
from toold.sources.upstream_definition import UpstreamDefinition

NAMES = st.lists(st.sampled_from(["a", "b", "c", "d/e", "d.e", "d_e"]), unique=True)


def define(*names: str, description: str = "Do it.") -> list[UpstreamDefinition]:
    return [UpstreamDefinition(name, description) for name in names]


def test_the_first_listing_is_pinned() -> None:
    """Nothing is quarantined."""
    compared = compare_listing("s", None, define("a", "b"), ())
    assert [(item.served, item.quarantine_reason) for item in compared] == [("a", None), ("b", None)]


def test_new_and_changed_tools_are_quarantined() -> None:
    """Until they are approved; unchanged tools stay available."""
    pins = approved_pins(None, compare_listing("s", None, define("a", "b"), ()))
    now = [*define("a"), *define("b", description="Else."), *define("c")]
    compared = {item.definition.name: item for item in compare_listing("s", pins, now, ())}
    assert {name: item.quarantine_reason for name, item in compared.items()} == {
        "a": None,
        "b": "has another description",
        "c": "is new",
    }
    pins = approved_pins(pins, [compared["b"]])
    assert [item.quarantine_reason for item in compare_listing("s", pins, now, ())] == [None, None, "is new"]


def test_a_tool_that_returns_is_still_approved() -> None:
    """Pins of absent tools are retained."""
    pins = approved_pins(None, compare_listing("s", None, define("a", "b"), ()))
    assert [item.quarantine_reason for item in compare_listing("s", pins, define("b"), ())] == [None]
    assert [item.quarantine_reason for item in compare_listing("s", pins, define("a", "b"), ())] == [None, None]


@given(first=NAMES, later=NAMES, taken=st.sets(st.sampled_from(["a", "b", "s_a", "s_d_e"])))
def test_names_are_stable_and_unique(first: list[str], later: list[str], taken: set[str]) -> None:
    """For any two listings."""
    pins = approved_pins(None, compare_listing("s", None, define(*first), taken))
    compared = compare_listing("s", pins, define(*later), taken)
    served = [item.served for item in compared]
    assert len(set(served)) == len(served)
    assert not taken & set(served)
    assert all(item.served == pins[item.definition.name].served for item in compared if item.definition.name in pins)


def test_a_taken_name_wins_over_a_pinned_one() -> None:
    """The pinned name is used again once it is free."""
    pins = {"a": ToolPin("a", UpstreamDefinition("a"))}
    assert [item.served for item in compare_listing("s", pins, define("a"), {"a"})] == ["s_a"]
    assert [item.served for item in compare_listing("s", pins, define("a"), ())] == ["a"]


def test_only_the_owner_can_read_the_pin_file(tmp_path: Path) -> None:
    """It is one file for each set of pins."""
    PinFiles(tmp_path / "pins").write("s", b"{}")
    assert (tmp_path / "pins" / "s.json").stat().st_mode & 0o077 == 0


def test_an_approval_of_a_version_that_another_one_replaced_is_refused() -> None:
    """Two operators approve the same tool: the first one decides, unless they approve the same version. An approval of
    another tool does not matter.
    """
    seen = approved_pins(None, compare_listing("s", None, define("a", "b"), ()))

    def approval(description: str, pins: Pins, name: str = "a") -> Pins:
        return merged_approval(pins, seen, compare_listing("s", seen, define(name, description=description), ()))

    stored = approval("first", approval("other", seen, "b"))
    assert {name: pin.definition.description for name, pin in stored.items()} == {"a": "first", "b": "other"}
    assert approval("first", stored) == stored
    with pytest.raises(PinConflictError, match="another version of 'a' was approved meanwhile"):
        approval("second", stored)
