"""The names of tools and arguments, and how conflicts are resolved."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.sources.source_tool_names import argument_name, default_operation_id, tool_name
from toold.tools import TOOL_NAME


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("get-contact", "crm_get-contact"),
        ("contacts/list all (v2)", "crm_contacts_list_all_v2"),
        ("Kontakt.\u00e4ndern", "crm_Kontakt_ndern"),
        ("\u3053\u3093", "crm_operation"),
    ],
)
def test_a_tool_is_named_after_its_operation(text: str, name: str) -> None:
    """In the characters that tool names may have."""
    assert tool_name("crm", text, ()) == name


def test_shortened_names_are_stable() -> None:
    """A long name keeps its beginning and a hash of the whole, independent of other names."""
    first, other = tool_name("crm", "a" * 100, ()), tool_name("crm", "a" * 101, ())
    assert len(first) == 64
    assert first != other
    assert first == tool_name("crm", "a" * 100, ())


def test_a_name_that_is_taken_is_numbered() -> None:
    """The second of two operations with the same id gets the suffix 2."""
    assert tool_name("crm", "get", {"crm_get"}) == "crm_get_2"
    assert tool_name("crm", "get", {"crm_get", "crm_get_2"}) == "crm_get_3"


def test_thousands_of_equal_names_are_numbered_quickly() -> None:
    """Each lookup tests a few of the taken names, not all."""
    taken = CountingSet()
    for number in range(1, 2001):
        name = tool_name("crm", "get", taken)
        assert name == ("crm_get" if number == 1 else f"crm_get_{number}")
        taken.names.add(name)
    assert taken.lookups < 2000 * 25


class CountingSet:
    """A set of names that counts its lookups."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.lookups = 0

    def __contains__(self, name: object) -> bool:
        self.lookups += 1
        return name in self.names


def test_an_operation_without_an_id_is_named_after_its_path() -> None:
    """Method and path, in the characters of a name."""
    assert default_operation_id("GET", "/contacts/{contactId}/notes") == "get_contacts_contactId_notes"
    assert default_operation_id("GET", "/") == "get_root"


def test_arguments_keep_their_names_if_possible() -> None:
    """Brackets are removed; a taken name is prefixed by the argument's location."""
    assert argument_name("filter[name]", "query", ()) == "filter_name"
    assert argument_name("id", "body", {"id"}) == "body_id"
    assert argument_name("id", "body", {"id", "body_id"}) == "body_id_2"
    assert argument_name("[]", "query", ()) == "query"


@given(st.text(max_size=200), st.sets(st.text("ab_", max_size=5)))
def test_any_text_makes_a_usable_name(text: str, taken: set[str]) -> None:
    """Vendors accept it, and it is not taken."""
    assert TOOL_NAME.fullmatch(tool_name("s", text, taken))
    assert tool_name("s", text, taken) not in taken
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", argument_name(text, "query", taken))
    assert argument_name(text, "query", taken) not in taken
