"""What was accepted of a server's tools, and what is held against it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.sources.mcp.tool_pins import PinError, PinFile, ToolPin, accepted, judge
from toold.sources.mcp.upstream_definition import UpstreamDefinition

NAMES = st.lists(st.sampled_from(["a", "b", "c", "d/e", "d.e", "d_e"]), unique=True)


def define(*names: str, description: str = "Do it.") -> list[UpstreamDefinition]:
    return [UpstreamDefinition(name, description) for name in names]


def test_the_first_listing_is_accepted() -> None:
    """As it is."""
    judged = judge("s", None, define("a", "b"), ())
    assert [(one.served, one.objection) for one in judged] == [("a", None), ("b", None)]


def test_what_is_new_or_has_changed_is_held_back() -> None:
    """Until it is accepted; what is as it was goes on."""
    pins = accepted(None, judge("s", None, define("a", "b"), ()))
    now = [*define("a"), *define("b", description="Else."), *define("c")]
    judged = {one.definition.name: one for one in judge("s", pins, now, ())}
    assert {name: one.objection for name, one in judged.items()} == {
        "a": None,
        "b": "has another description",
        "c": "is new",
    }
    pins = accepted(pins, [judged["b"]])
    assert [one.objection for one in judge("s", pins, now, ())] == [None, None, "is new"]


def test_a_tool_that_was_away_is_known_when_it_is_back() -> None:
    """What was accepted stays so."""
    pins = accepted(None, judge("s", None, define("a", "b"), ()))
    assert [one.objection for one in judge("s", pins, define("b"), ())] == [None]
    assert [one.objection for one in judge("s", pins, define("a", "b"), ())] == [None, None]


@given(first=NAMES, later=NAMES, taken=st.sets(st.sampled_from(["a", "b", "s_a", "s_d_e"])))
def test_names_stay_and_no_two_tools_have_one(first: list[str], later: list[str], taken: set[str]) -> None:
    """Whatever comes and goes."""
    pins = accepted(None, judge("s", None, define(*first), taken))
    judged = judge("s", pins, define(*later), taken)
    served = [one.served for one in judged]
    assert len(set(served)) == len(served)
    assert not taken & set(served)
    assert all(one.served == pins[one.definition.name].served for one in judged if one.definition.name in pins)


def test_a_name_of_the_daemons_own_wins() -> None:
    """A pinned name that another tool has by now gives way, and comes back when it is free."""
    pins = {"a": ToolPin("a", UpstreamDefinition("a"))}
    assert [one.served for one in judge("s", pins, define("a"), {"a"})] == ["s_a"]
    assert [one.served for one in judge("s", pins, define("a"), ())] == ["a"]


def test_pins_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    """They are read as they were written; before the first listing there are none."""
    file = PinFile(tmp_path / "pins", "s")
    assert file.read() is None
    pins = {"a": ToolPin("s_a", UpstreamDefinition("a", "Do it.", {"type": "object"}, None, {"readOnlyHint": True}))}
    file.write(pins)
    assert file.read() == pins
    assert (tmp_path / "pins" / "s.json").stat().st_mode & 0o077 == 0


def test_a_file_that_holds_no_pins_accepts_nothing(tmp_path: Path) -> None:
    """It is not taken for a first listing."""
    (tmp_path / "s.json").write_text("{", encoding="utf-8")
    with pytest.raises(PinError, match=r"s\.json holds no pins"):
        PinFile(tmp_path, "s").read()
