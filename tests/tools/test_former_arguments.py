"""Arguments as earlier servers took them: renamed, converted or ignored, with a notice for each change."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import Field, SecretStr
from toold.protocol.error_codes import InvalidArgumentsError
from toold.tools import Arguments, ToolContext, tool
from toold.tools.argument_binding import AdaptedValues, bind_arguments
from toold.tools.builtin.chat import chat
from toold.tools.former_arguments import FormerArgument, FormerNames, FormerValues


class SearchArguments(Arguments):
    ignored_arguments: ClassVar[Mapping[str, str]] = {"stream": "chunks are sent to clients that read them"}
    former_arguments: ClassVar[Mapping[str, FormerArgument]] = {
        "kind": FormerArgument("deep", {"quick": False, "full": True, "normal": None})
    }

    query: Annotated[str, FormerNames("search_query", "q")] = ""
    count: int = 10
    score: float | None = None
    deep: bool = False
    sites: list[str] = Field(default=[])
    options: dict[str, int] = Field(default={})
    key: SecretStr | None = None
    order: Annotated[
        Literal["newest", "oldest"], FormerValues(lambda value: "newest" if value == "latest" else value)
    ] = "newest"
    limit: Annotated[int, FormerNames("lines", clamped=True), Field(ge=1, le=100)] = 10


@tool("search", read_only=True, open_world=False)
async def search(arguments: SearchArguments, context: ToolContext) -> str:
    """Search."""
    return arguments.query


@pytest.mark.parametrize(
    ("arguments", "values", "notices"),
    [
        ({"query": "x"}, {"query": "x"}, ()),
        ({"q": "x"}, {"query": "x"}, ("q is now query.",)),
        ({"q": "x", "query": "x"}, {"query": "x"}, ("q is now query.",)),
        ({"stream": True}, {}, ("stream is ignored: chunks are sent to clients that read them.",)),
        ({"count": "7"}, {"count": 7}, ('count: "7" was read as 7.',)),
        ({"count": 7.0}, {"count": 7}, ("count: 7.0 was read as 7.",)),
        ({"score": " 0.5 "}, {"score": 0.5}, ('score: " 0.5 " was read as 0.5.',)),
        ({"deep": "True"}, {"deep": True}, ('deep: "True" was read as true.',)),
        ({"sites": '["a", "b"]'}, {"sites": ["a", "b"]}, ('sites: "[\\"a\\", \\"b\\"]" was read as ["a", "b"].',)),
        ({"options": '{"a": 1}'}, {"options": {"a": 1}}, ('options: "{\\"a\\": 1}" was read as {"a": 1}.',)),
        ({"sites": "a"}, {"sites": ["a"]}, ('sites: "a" was read as ["a"].',)),
        ({"sites": ""}, {"sites": []}, ('sites: "" was read as [].',)),
        ({"sites": None, "count": None}, {}, ("sites: null was read as absent.", "count: null was read as absent.")),
        ({"order": "latest"}, {"order": "newest"}, ('order: "latest" was read as "newest".',)),
        ({"kind": "quick", "deep": True}, {"deep": False}, ('kind: "quick" was read as deep: false.',)),
        ({"kind": "normal", "deep": True}, {"deep": True}, ('kind: "normal" is the default.',)),
        ({"lines": 500}, {"limit": 100}, ("lines is now limit.", "limit: 500 was read as 100.")),
        ({"lines": 0}, {"limit": 1}, ("lines is now limit.", "limit: 0 was read as 1.")),
        ({"q": "x", "count": "7"}, {"query": "x", "count": 7}, ("q is now query.", 'count: "7" was read as 7.')),
    ],
)
def test_former_arguments_are_adapted(
    arguments: dict[str, Any], values: dict[str, Any], notices: tuple[str, ...]
) -> None:
    """Each change has a notice; current arguments have none."""
    current, bound = SearchArguments(**values), bind_arguments(search, arguments)
    if not notices:
        assert bound == current
        return
    assert isinstance(bound, AdaptedValues)
    assert bound.values == SearchArguments(**bound.arguments) == current
    assert bound.notices == notices


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"quary": "x"}, "quary is not an argument; did you mean 'query'"),
        ({"q": "x", "query": "y"}, "query has two values, as q and as query; send one of them"),
        ({"count": "seven"}, 'count should be an integer, not "seven"'),
        ({"count": "7.5"}, 'count should be an integer, not "7.5"'),
        ({"count": "1" * 20}, "count should be an integer"),
        ({"score": "nan"}, 'score should be a number, not "nan"'),
        ({"deep": "yes"}, 'deep should be true or false, not "yes"'),
        ({"sites": '{"a": 1}'}, "sites should be an array"),
        ({"sites": "[" * 100_000}, "sites should be an array"),
        ({"q": 1}, "query should be a string, not 1"),
        ({"sites": 1}, "sites should be an array"),
        ({"order": "last"}, "order should be"),
        ({"kind": "slow"}, "kind is not an argument"),
        ({"kind": ["quick"]}, "kind is not an argument"),
        ({"limit": 500}, "limit should be less than or equal to 100, not 500"),
        ({"stream": True, "count": "x"}, 'count should be an integer, not "x"'),
    ],
)
def test_other_arguments_stay_invalid(arguments: dict[str, Any], says: str) -> None:
    """A typo, a lossy conversion and two values for one argument are errors, as before."""
    with pytest.raises(InvalidArgumentsError) as caught:
        bind_arguments(search, arguments)
    assert says in caught.value.message


def test_strict_tools_take_current_arguments_only() -> None:
    """With ``strict_arguments`` a former name is unknown, and text is not a number."""
    for arguments in ({"q": "x"}, {"count": "7"}, {"stream": True}):
        with pytest.raises(InvalidArgumentsError):
            bind_arguments(search, arguments, strict=True)


def test_schemas_list_current_names_only() -> None:
    """Former and ignored names cost no client tokens."""
    assert set(search.info.input_schema["properties"]) == set(SearchArguments.model_fields)


def test_chat_takes_the_arguments_of_earlier_servers() -> None:
    """The names of both predecessors lead to the same arguments."""
    bound = bind_arguments(
        chat,
        {
            "prompt": "?", "use_websearch": True, "thinking_mode": "high", "temperature": "0.5",
            "absolute_file_paths": ["a.txt"], "stream": False,
        },
    )  # fmt: skip
    current = {"prompt": "?", "web_search": True, "thinking": "high", "temperature": 0.5, "files": ["a.txt"]}
    assert isinstance(bound, AdaptedValues)
    assert bound.values == bind_arguments(chat, current)
    assert len(bound.notices) == 5
