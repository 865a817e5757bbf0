"""Operations of an API document are chosen by globs."""

from typing import Any

import pytest
from toold.sources import SourceSettingsError, read_sources
from toold.sources.operation_filter import OperationFacts, OperationSelection
from toold.sources.source_settings import OpenApiSettings

OPERATIONS = [
    OperationFacts("listContacts", ("Contacts",), "/contacts", "GET"),
    OperationFacts("deleteContact", ("Contacts", "admin/users"), "/contacts/{id}", "DELETE"),
    OperationFacts("listPets", ("Pets",), "/pets", "GET"),
    OperationFacts("get_health", (), "/health", "GET"),
]


def settings(**fields: Any) -> OpenApiSettings:
    (crm,) = read_sources({"crm": {"type": "openapi", "spec": "/crm.json", **fields}}).values()
    assert isinstance(crm, OpenApiSettings)
    return crm


def selection(**fields: Any) -> OperationSelection:
    crm = settings(**fields)
    return OperationSelection(crm.include, crm.exclude)


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({}, ["listContacts", "deleteContact", "listPets", "get_health"]),
        ({"include": {"operations": ["list*", "get_health"]}}, ["listContacts", "listPets", "get_health"]),
        ({"include": {"tags": ["Con*"]}}, ["listContacts", "deleteContact"]),
        ({"include": {"tags": ["Contacts"], "methods": ["get"]}}, ["listContacts"]),
        ({"include": {"paths": ["/contacts*"]}}, ["listContacts", "deleteContact"]),
        ({"include": [{"tags": ["Pets"]}, {"methods": ["DELETE"]}]}, ["deleteContact", "listPets"]),
        ({"exclude": {"methods": ["DELETE"]}}, ["listContacts", "listPets", "get_health"]),
        ({"exclude": {"tags": ["admin/*"]}}, ["listContacts", "listPets", "get_health"]),
        ({"exclude": {"tags": ["Contacts"], "methods": ["GET"]}}, ["deleteContact", "listPets", "get_health"]),
        ({"include": {"tags": ["Contacts"]}, "exclude": {"operations": ["delete*"]}}, ["listContacts"]),
    ],
)
def test_operations_are_chosen(fields: dict[str, Any], names: list[str]) -> None:
    """By id, tag, path and method: all keys of one table, and any table of a list, have to match."""
    chosen = selection(**fields)
    assert [facts.operation for facts in OPERATIONS if chosen.selects(facts)] == names
    assert chosen.excluded == len(OPERATIONS) - len(names)


def test_globs_without_a_match_are_reported() -> None:
    """Each for itself: another key that excludes the operation does not matter."""
    chosen = selection(
        include={"tags": ["Pets", "Pest"], "methods": ["POST"]}, exclude=[{"operations": ["listContacts"]}]
    )
    assert not any(chosen.selects(facts) for facts in OPERATIONS)
    assert list(chosen.unmatched()) == [
        ("include", "no operation matches 'Pest' in tags"),
        ("include", "no operation matches 'POST' in methods"),
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"include": {}}, "include must have operations, tags, paths or methods"),
        ({"include": {"tag": ["a"]}}, "include.tag is not a setting; did you mean 'tags'?"),
        ({"exclude": {"tags": "a"}}, "exclude.tags must be a list"),
        ({"exclude": {"tags": []}}, "exclude.tags must have one entry or more"),
        ({"exclude": "GET"}, "exclude must be a list"),
        ({"include": {"paths": ["/x"] * 300}}, "include.paths must have 200 entries or fewer"),
        ({"max_documents": -1}, "max_documents must be 0 or more"),
        ({"max_documents": 20_000}, "max_documents must be 10000 or less"),
    ],
)
def test_errors_name_the_key(fields: dict[str, Any], message: str) -> None:
    """And what is allowed."""
    with pytest.raises(SourceSettingsError) as raised:
        settings(**fields)
    assert message in str(raised.value)
