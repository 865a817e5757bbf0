"""Names: what tools and arguments are called, and what they are called where that is taken."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.sources.source_tool_names import argument_name, said_of, tool_name
from toold.tools import TOOL_NAME


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("get-contact", "crm_get-contact"),
        ("contacts/list all (v2)", "crm_contacts_list_all_v2"),
        ("Kontakt.\u00e4ndern", "crm_Kontakt_ndern"),
        ("\u3053\u3093", "crm_operation"),
    ],
)
def test_a_tool_has_its_operations_name(said: str, name: str) -> None:
    """In the characters that a tool's name may have."""
    assert tool_name("crm", said, ()) == name


def test_names_are_shortened_the_same_way_each_time() -> None:
    """A long name keeps its beginning and a hash of all, so that it neither clashes nor changes with its neighbours."""
    one, other = tool_name("crm", "a" * 100, ()), tool_name("crm", "a" * 101, ())
    assert len(one) == 64
    assert one != other
    assert one == tool_name("crm", "a" * 100, ())


def test_a_name_that_is_taken_is_numbered() -> None:
    """The second of two operations with one id has a 2 behind it."""
    assert tool_name("crm", "get", {"crm_get"}) == "crm_get_2"
    assert tool_name("crm", "get", {"crm_get", "crm_get_2"}) == "crm_get_3"


def test_thousands_of_one_name_are_numbered_quickly() -> None:
    """In their order, and each looks at a few of those before it, not at all."""
    taken = Counting()
    for number in range(1, 2001):
        name = tool_name("crm", "get", taken)
        assert name == ("crm_get" if number == 1 else f"crm_get_{number}")
        taken.names.add(name)
    assert taken.looks < 2000 * 25


class Counting:
    """Names, and how often one was looked for."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.looks = 0

    def __contains__(self, name: object) -> bool:
        self.looks += 1
        return name in self.names


def test_an_operation_without_a_name_is_called_by_its_path() -> None:
    """Method and path, without what a name cannot have."""
    assert said_of("GET", "/contacts/{contactId}/notes") == "get_contacts_contactId_notes"
    assert said_of("GET", "/") == "get_root"


def test_arguments_have_their_own_names_as_far_as_they_go() -> None:
    """Brackets go; where a name is taken, it says where it goes to."""
    assert argument_name("filter[name]", "query", ()) == "filter_name"
    assert argument_name("id", "body", {"id"}) == "body_id"
    assert argument_name("id", "body", {"id", "body_id"}) == "body_id_2"
    assert argument_name("[]", "query", ()) == "query"


@given(st.text(max_size=200), st.sets(st.text("ab_", max_size=5)))
def test_any_text_makes_a_usable_name(said: str, taken: set[str]) -> None:
    """Whatever a document says, the name is one that vendors take, and is free."""
    assert TOOL_NAME.fullmatch(tool_name("s", said, taken))
    assert tool_name("s", said, taken) not in taken
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", argument_name(said, "query", taken))
    assert argument_name(said, "query", taken) not in taken
