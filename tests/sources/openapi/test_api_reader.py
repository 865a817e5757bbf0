"""Reading a document: one tool per operation; an invalid operation does not affect others."""

from typing import Any

import pytest
from toold.sources import read_sources
from toold.sources.openapi import api_reader
from toold.sources.openapi.api_reader import UnreadableApiError, read_api
from toold.sources.openapi.request_origin import origin
from toold.sources.operation_filter import OperationSelection
from toold.sources.source_settings import OpenApiSettings

OK: dict[str, Any] = {"responses": {"200": {"description": "fine"}}}


def notes_of(api: Any) -> list[str]:
    return [f"{note.kind}: {note}" for note in api.notes]


def test_each_operation_becomes_a_tool(read_paths: Any) -> None:
    """Named by its id, with its description, method and path."""
    api = read_paths(
        {
            "/contacts/{id}": {
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                "get": {"operationId": "getContact", "summary": "One contact", "description": "With all its fields."},
                "delete": {"operationId": "removeContact"},
                "x-mine": {},
            },
            "x-more": {},
        },
        info={"title": "CRM"},
    )
    get, delete = api.operations
    assert (get.name, get.method, get.path) == ("crm_getContact", "GET", "/contacts/{id}")
    assert get.server == "https://crm.example/v1"
    assert get.description == "One contact\n\nWith all its fields.\n\nGET /contacts/{id}"
    assert get.arguments.schema == {
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "required": ["id"],
        "additionalProperties": False,
    }
    assert delete.description == "DELETE /contacts/{id}"
    assert api.title == "CRM"
    assert api.notes == ()


BAD: list[tuple[dict[str, Any], list[str]]] = [
    ({"/x": {"get": "nothing"}}, ["omitted: GET /x: it is not an object"]),
    ({"/x": "nothing"}, ["omitted: /x: it is not an object"]),
    ({"/x": {"$ref": "#/components/pathItems/Gone"}}, ["omitted: /x: #/components/pathItems/Gone leads nowhere"]),
    ({"/x/../y": {"get": OK}}, ["omitted: GET /x/../y: its path has a . or .. segment"]),
    ({"/x": {"head": OK}}, ["omitted: HEAD /x: HEAD does not become a tool"]),
    ({"/x": {"get": {}}}, ["repaired: GET /x: it has no operationId; named by its method and path"]),
    ({"x": {"get": {"operationId": "x"}}}, ["repaired: GET x: its path does not start with a slash"]),
    ({"/x#y": {"get": {"operationId": "x"}}}, ["repaired: GET /x#y: its path has a fragment, which is not sent"]),
    (
        {"/x": {"get": {"operationId": "ok"}}},
        ["repaired: GET /x: another operation has the id 'ok'; this one is crm_ok_2"],
    ),
    (
        {"/x/{id}": {"get": {"operationId": "x"}}},
        ["repaired: GET /x/{id}: the path parameter 'id' is not declared; treated as a string"],
    ),
    (
        {"/x": {"get": {"operationId": "x", "servers": [{"url": "https://files.example"}]}}},
        ["repaired: GET /x: its server is https://files.example:443, not that of the source; no secret is sent"],
    ),
    (
        {"/x": {"post": {"operationId": "x", "requestBody": {"$ref": "#/components/requestBodies/Gone"}}}},
        ["repaired: POST /x: #/components/requestBodies/Gone leads nowhere"],
    ),
]


@pytest.mark.parametrize(("paths", "expected"), BAD, ids=[bad[1][0] for bad in BAD])
def test_an_invalid_operation_affects_no_other(paths: dict[str, Any], expected: list[str], read_paths: Any) -> None:
    """It is repaired or omitted, with a note."""
    api = read_paths({"/ok": {"get": {"operationId": "ok"}}} | paths)
    assert api.operations[0].name == "crm_ok"
    notes = notes_of(api)
    assert all(any(note.startswith(one) for note in notes) for one in expected), notes
    assert len(api.operations) == (1 if notes[0].startswith("omitted") else 2)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"swagger": "2.0", "paths": {}}, "Swagger 2.0; convert it to OpenAPI 3"),
        ({"openapi": "4.0.0", "paths": {}}, "3.0 and 3.1 are supported"),
        ({"paths": {}}, "no `openapi"),
        ({"openapi": "3.1.0"}, "no paths"),
        ({"openapi": "3.1.0", "paths": []}, "no paths"),
    ],
)
def test_other_documents_are_refused(document: dict[str, Any], message: str) -> None:
    """The error says what the document is, and how to fix it."""
    with pytest.raises(UnreadableApiError, match=message):
        read_api({"file:///x": document}, "file:///x", prefix="crm", absent={}, base_url=None, secret_at=None)


@pytest.mark.parametrize("version", ["3.0.0", "3.1.0", "3.1", 3.0, "3.2.0"])
def test_versions_3_are_read(version: Any, read_paths: Any) -> None:
    """The version may be a number, as in YAML without quotes."""
    assert len(read_paths({"/x": {"get": OK}}, openapi=version).operations) == 1


@pytest.mark.parametrize(
    ("parts", "server"),
    [
        ({"servers": [{"url": "https://{region}.crm.example/v2/", "variables": {"region": {"default": "eu"}}}]},
         "https://eu.crm.example/v2"),
        ({"servers": [{"url": "/v3"}]}, "https://crm.example/v3"),
        ({"servers": [{"url": "../v4"}]}, "https://crm.example/v4"),
        ({"servers": []}, "https://crm.example"),
        ({"servers": [{"url": "http://["}, {"url": 7}, "x", {"url": "https://b.example"}]}, "https://b.example"),
        ({"base_url": "https://mine.example/api/"}, "https://mine.example/api"),
    ],
)  # fmt: skip
def test_the_first_usable_server_is_used(parts: dict[str, Any], server: str, read_paths: Any) -> None:
    """Absolute, with the defaults of its variables."""
    assert read_paths({"/x": {"get": OK}}, **parts).operations[0].server == server


def test_an_operation_without_a_server_is_omitted() -> None:
    """A file has no host to complete it."""
    document = {"openapi": "3.0.0", "paths": {"/x": {"get": OK}}}
    api = read_api({"file:///x": document}, "file:///x", prefix="crm", absent={}, base_url=None, secret_at=None)
    assert api.operations == ()
    assert "it has no server URL; set base_url" in api.notes[-1].what


def test_the_secrets_parameter_is_no_argument(read_paths: Any) -> None:
    """Operations that require no secret get none."""
    key = {"name": "X-Api-Key", "in": "header", "required": True, "schema": {"type": "string"}}
    api = read_paths(
        {
            "/x": {
                "get": {"operationId": "x", "parameters": [key]},
                "post": {"operationId": "login", "security": []},
            }
        },
        secret_at=("header", "x-api-key"),
    )
    assert api.operations[0].arguments.schema["properties"] == {}
    assert [operation.with_secret for operation in api.operations] == [True, False]


def test_a_bad_document_still_has_its_valid_operations(read_paths: Any) -> None:
    """Each defect has a note."""
    paths: dict[str, Any] = {"/good": {"get": {"operationId": "good"}}}
    for number, (bad, _) in enumerate(BAD):
        paths |= {
            f"{path}{number}" if path.startswith("/x") and "#" not in path else path: item for path, item in bad.items()
        }
    names = [operation.name for operation in read_paths(paths).operations]
    assert names[0] == "crm_good"
    assert len(names) == len(set(names))


def test_origins_include_ports() -> None:
    """Default ports are filled in."""
    assert origin("https://CRM.example/x") == origin("https://crm.example:443/y")
    assert origin("https://crm.example") != origin("http://crm.example")
    assert origin("https://crm.example") != origin("https://crm.example:8443")


def test_a_server_without_a_host_uses_that_of_the_document() -> None:
    """If the document is a file; a note says so."""
    servers = [{"url": "/files"}]
    document = {
        "openapi": "3.0.3",
        "servers": [{"url": "https://crm.example/v1"}],
        "paths": {"/x": {"get": {"operationId": "x", "servers": servers}}},
    }
    uri = "file:///apis/crm.json"
    api = read_api({uri: document}, uri, prefix="crm", absent={}, base_url=None, secret_at=None)
    assert api.operations[0].server == "https://crm.example/files"
    assert api.operations[0].with_secret
    assert notes_of(api) == ["repaired: GET /x: its server URL has no host; https://crm.example/files is used"]


def test_the_number_of_operations_is_limited(read_paths: Any) -> None:
    """To 2,000 of those that are selected; one note counts the others."""
    paths = {f"/x{number}": {"get": {"operationId": f"x{number}"}} for number in range(2003)}
    api = read_paths(paths)
    assert len(api.operations) == 2000
    assert notes_of(api) == [
        "omitted: paths: the document has 3 more than 2,000 operations; choose with include and exclude"
    ]
    globs = {"include": {"operations": ["x1", "x2002", "y*"]}, "exclude": {"paths": ["/x1"]}}
    (settings,) = read_sources({"crm": {"type": "openapi", "spec": "/a", **globs}}).values()
    assert isinstance(settings, OpenApiSettings)
    api = read_paths(paths, selection=OperationSelection(settings.include, settings.exclude))
    assert ([operation.name for operation in api.operations], api.excluded) == (["crm_x2002"], 2002)
    assert notes_of(api) == ["omitted: include: no operation matches 'y*' in operations"]


def test_an_operation_may_be_a_reference(read_paths: Any) -> None:
    """It is selected by what it refers to."""
    operations = {"one": {"operationId": "getOne", "tags": ["Ones"]}, "two": {"operationId": "getTwo"}}
    paths = {f"/{name}": {"get": {"$ref": f"#/components/x-operations/{name}"}} for name in operations}
    globs = {"include": {"tags": ["Ones"], "operations": ["getOne"]}}
    (settings,) = read_sources({"crm": {"type": "openapi", "spec": "/a", **globs}}).values()
    assert isinstance(settings, OpenApiSettings)
    selection = OperationSelection(settings.include, settings.exclude)
    api = read_paths(paths, selection=selection, components={"x-operations": operations})
    assert [operation.name for operation in api.operations] == ["crm_getOne"]
    assert notes_of(api) == []


def test_notes_are_terminal_safe(read_paths: Any) -> None:
    """They contain no control characters."""
    api = read_paths({"/\x1b[2J": {"get": {}}})
    assert notes_of(api) == ["repaired: GET / [2J: it has no operationId; named by its method and path"]


def test_the_total_size_of_schemas_is_limited(read_paths: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All operations share a budget."""
    monkeypatch.setattr(api_reader, "MAX_TOTAL_SUBSCHEMAS", 120)
    schemas = {
        f"S{number}": {
            "type": "object",
            "properties": {"next": {"$ref": f"#/components/schemas/S{(number + 1) % 100}"}},
        }
        for number in range(100)
    }
    body = {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S0"}}}}}
    paths = {f"/x{number}": {"post": {"operationId": f"x{number}", **body}} for number in range(3)}
    api = read_paths(paths, components={"schemas": schemas})
    sizes = [len(operation.arguments.schema["$defs"]) for operation in api.operations]
    assert len(sizes) == 3
    assert sizes[0] > 50 > sizes[2] == sizes[1]
    assert notes_of(api)[-1].endswith("its schema has over 50 subschemas; the rest is treated as any value")
