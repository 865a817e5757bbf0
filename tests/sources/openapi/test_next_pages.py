"""Lists in pages: the link to the next page is found, kept, and followed when the caller asks for it."""

from typing import Any

import pytest
from starlette.responses import JSONResponse, Response
from toold.protocol.error_codes import CallError, InvalidArgumentsError
from toold.protocol.tool_call import TextContent
from toold.sources.openapi.next_pages import MAX_PAGES, NextPages, next_page_url
from toold.tools import ToolOutput

from .api_secret import SECRET

URL = "https://crm.example/v1/things?page=1"
ARRAY: dict[str, Any] = {"type": "array", "items": {"type": "object"}}


@pytest.mark.parametrize(
    ("links", "data", "target"),
    [
        (['<https://crm.example/v1/things?page=2>; rel="next"'], None, "https://crm.example/v1/things?page=2"),
        (
            ['<?page=9>; rel="last", </other/1?page=2>;title="a, b"; rel=next'],
            None,
            "https://crm.example/other/1?page=2",
        ),
        (["<?page=2>; rel=last", '<?page=3>; rel="prev NEXT"'], [], "https://crm.example/v1/things?page=3"),
        ([], {"next": "https://crm.example/v1/things?page=2"}, "https://crm.example/v1/things?page=2"),
        ([], {"links": {"next": {"href": "/v1/things?after=x"}}}, "https://crm.example/v1/things?after=x"),
        ([], {"@odata.nextLink": "?$skip=2#top"}, "https://crm.example/v1/things?$skip=2"),
        (["<?page=2&key=x>; rel=next"], None, "https://crm.example/v1/things?page=2"),
        ([], {"next": 2, "links": {"next": None}}, None),
        ([], {"next": "tomorrow"}, None),
        (["<?page=1>; rel=next"], None, None),
        (["<https://elsewhere.example/?page=2>; rel=next"], {"next": "http://crm.example/"}, None),
        (["<https://[>; rel=next", "<?page=2; rel=next"], None, None),
        ([f"<?page={'2' * 5000}>; rel=next"], None, None),
    ],
)
def test_the_next_page_is_found(links: list[str], data: Any, target: str | None) -> None:
    """By the header, else where the answer has it; only at the same origin, and without the secret's parameter."""
    assert next_page_url(links, data, URL, without="key") == target


def test_a_link_belongs_to_its_principal_and_operation() -> None:
    """No other principal can use it; the oldest ones of a principal are dropped."""
    pages = NextPages()
    first = pages.keep("ann", "list", URL)
    assert pages.url("ann", "list", "next_page", first) == URL
    for principal, operation in (("bob", "list"), ("ann", "other")):
        with pytest.raises(InvalidArgumentsError, match="next_page is not from a recent answer"):
            pages.url(principal, operation, "next_page", first)
    for _ in range(MAX_PAGES):
        pages.keep("bob", "list", URL)
    assert pages.url("ann", "list", "next_page", first) == URL
    for _ in range(MAX_PAGES):
        pages.keep("ann", "list", URL)
    with pytest.raises(InvalidArgumentsError, match="start at the first page"):
        pages.url("ann", "list", "next_page", first)


def answering(schema: Any, **response: Any) -> dict[str, Any]:
    content = {} if schema is None else {"content": {"application/json": {"schema": schema}}}
    return {"responses": {"200": {"description": "ok", **content, **response}}}


@pytest.mark.parametrize(
    ("path", "operation", "paged"),
    [
        ("/things", answering(ARRAY), True),
        ("/users/{id}/things", answering({"$ref": "#/components/schemas/List"}), True),
        ("/things", answering({"allOf": [{"properties": {"data": ARRAY}}]}), True),
        ("/things/{id}", answering({"properties": {"tags": ARRAY}}), False),
        ("/things/{id}", answering(ARRAY), True),
        ("/things/{id}", answering({"type": "object"}, headers={"Link": {}}), True),
        ("/things", answering({"properties": {"count": {"type": "integer"}}}), False),
        ("/things", answering(None), True),
        ("/things/{id}", answering(None), False),
        ("/things", {}, False),
    ],
)
def test_list_operations_have_an_argument_for_the_next_page(
    path: str, operation: Any, paged: bool, read_one: Any
) -> None:
    """As far as the document shows; operations that are not GET have none."""
    components = {"schemas": {"List": {"properties": {"data": ARRAY}}}}
    properties = read_one(operation, method="get", path=path, components=components).arguments.schema["properties"]
    assert ("next_page" in properties) is paged
    assert read_one(operation, path=path, components=components).next_page is None


async def test_the_next_page_is_followed(api: Any, caller_with: Any, read_one: Any, context: Any) -> None:
    """With the source's secret and the caller's headers; text and metadata name it; its secret is in neither."""
    api.answers = [
        JSONResponse(
            [1],
            headers={
                "Link": f'<{api.url}/other/things?page=2&key={SECRET}>; rel="next"',
                "X-RateLimit-Remaining": "59",
                "X-Other": "y",
            },
        ),
        JSONResponse([2]),
    ]
    header = {"name": "X-Team", "in": "header", "schema": {"type": "string"}}
    operation = read_one(
        {**answering(ARRAY), "parameters": [header]}, method="get", path="/things", base_url=f"{api.url}/v1"
    )
    caller = caller_with(auth={"type": "api_key", "in": "query", "name": "key", "env": "CRM_TOKEN"})
    first = await caller.call(operation, {"X-Team": "a"}, context)
    assert isinstance(first, ToolOutput)
    response, name = context.response, context.response.next_page
    assert first.data == [1]
    assert first.blocks == (TextContent(f"There is a next page: repeat the call with next_page = '{name}'."),)
    assert set(response.headers) == {"link", "x-ratelimit-remaining"}
    assert SECRET not in str(response)
    operation.arguments.check("op", {"X-Team": "a", "next_page": name})
    context.response = None
    last = await caller.call(operation, {"X-Team": "a", "next_page": name}, context)
    assert (last.data, last.blocks, context.response) == ([2], (), None)
    assert [asked.target for asked in api.asked] == [f"/v1/things?key={SECRET}", f"/other/things?page=2&key={SECRET}"]
    assert [asked.headers["x-team"] for asked in api.asked] == ["a", "a"]


async def test_places_and_rate_limits_are_reported(api: Any, caller_with: Any, read_one: Any, context: Any) -> None:
    """Where a created object is, also in the text if there is no other; and when an error permits the next call."""
    operation = read_one({}, base_url=api.url)
    api.answers = [Response(status_code=201, headers={"Location": "/things/7"})]
    created = await caller_with().call(operation, {}, context)
    assert created.text == "HTTP 201, no content. The location is /things/7"
    assert (context.response.status, context.response.headers) == (201, {"location": "/things/7"})
    api.answers = [Response(status_code=429, headers={"RateLimit-Reset": "5", "Link": "x" * 9000})]
    with pytest.raises(CallError):
        await caller_with().call(operation, {}, context)
    assert (context.response.status, context.response.headers) == (429, {"ratelimit-reset": "5"})
