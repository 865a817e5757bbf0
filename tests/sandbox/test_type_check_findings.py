"""Findings of the type checker: only those that are certain to fail are reported."""

import json
from typing import Any

import pytest
from toold.sandbox import Program, ProgramModule, ProgramRefusedError
from toold.sandbox.program import prepare
from toold.sandbox.type_check_findings import MAX_REPORTED_ERRORS, find_type_errors, is_certain

MODULES = {"crm": ProgramModule(frozenset({"search", "get_contact"}), lambda _chosen: "")}


def reported(code: str, rule: str, message: str, *, line: int = 1, column: int = 1) -> list[str]:
    """The messages for one finding in a line of the program."""
    finding = {"code": rule, "message": message, "location": {"row": line + 1, "column": column}}
    return find_type_errors(json.dumps([finding, finding]), prepare(Program(code, MODULES)), MODULES)


@pytest.mark.parametrize(
    ("expected", "found", "certain"),
    [
        ("str", "Literal[3]", True),
        ("str", "int", True),
        ("int", 'Literal["3"]', True),
        ('Literal["a", "b"]', 'Literal["c"]', True),
        ('Literal["a, b | c"]', 'Literal["c"]', True),
        ("list[str]", "str", True),
        ("Search_Filter", "str", True),
        ("int | None", "str", True),
        ("bytes", "Literal[True]", True),
        ('Literal["a", "b"]', "str", False),
        ("str", "str | None", False),
        ("float", "int", False),
        ("list[int]", "list[float]", False),
        ("Search_Filter", "dict[str, int]", False),
        ("Any", "int", False),
        ("str", "Unknown", False),
        ("str", "Thing", False),
        ("list[str]", "tuple[str, str]", False),
        ("list[str] | None", "set[str]", False),
        ("dict[str, Any] | None", "None", False),
    ],
)
def test_a_type_error_is_certain_if_no_value_can_match(expected: str, found: str, certain: bool) -> None:
    """A union, an unknown type or an object may match at run time, so it is not reported."""
    assert is_certain(expected, found) is certain


def test_a_call_that_is_used_before_it_is_awaited_is_reported() -> None:
    """A coroutine may be passed to a parameter that accepts an awaitable."""
    used = "Object of type `CoroutineType[Any, Any, Any]` is not awaited"
    wants = "Argument to function `f` is incorrect: Expected `Awaitable[int]`, found `CoroutineType[Any, Any, str]`"
    assert reported("crm.search()", "unused-awaitable", used) == [
        "line 1: a call is used before it is awaited; write `await` in front of it"
    ]
    assert reported("f(crm.search())", "invalid-argument-type", wants) == []


def test_only_wrong_arguments_of_tools_are_reported() -> None:
    """Calls of the program's own functions and arguments from an unpacked dict are not reported."""
    missing = "No argument provided for required parameter `query` of function `{}`"
    wrong = "Argument to function `search` is incorrect: Expected `str`, found `int`"
    assert reported("await crm.search()", "missing-argument", missing.format("search")) == [
        "line 1: No argument provided for required parameter 'query' of function 'search'"
    ]
    assert reported("f()", "missing-argument", missing.format("f")) == []
    assert reported("await crm.search(query=3)", "invalid-argument-type", wrong, column=18) == [
        "line 1: an argument of search should be str, not int"
    ]
    assert reported("await crm.search(**d)", "invalid-argument-type", wrong, column=18) == []


def test_an_unknown_tool_is_reported_with_similar_names() -> None:
    """This covers an unknown function, an unknown module and a missing module name."""
    member = "Module `crm` has no member `serch`"
    assert reported("await crm.serch()", "unresolved-attribute", member) == [
        "line 1: there is no crm.serch; did you mean 'search'?"
    ]
    assert reported("await crn.search()", "unresolved-reference", "Name `crn` used when not defined", column=7) == [
        "line 1: there is no module 'crn'; did you mean 'crm'?"
    ]
    assert reported("await search()", "unresolved-reference", "Name `search` used when not defined", column=7) == [
        "line 1: there is no function 'search'; did you mean 'crm.search'?"
    ]


def test_the_number_of_findings_is_limited() -> None:
    """Of 100 findings only the first ``MAX_REPORTED_ERRORS`` are reported."""
    result = [
        {
            "code": "unresolved-attribute",
            "message": f"Module `crm` has no member `serch{number}`",
            "location": {"row": 2, "column": 1},
        }
        for number in range(100)
    ]
    assert len(find_type_errors(json.dumps(result), prepare(Program("x", MODULES)), MODULES)) == MAX_REPORTED_ERRORS


def test_a_repeated_finding_in_one_line_is_processed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for similar names is slow, so it runs once per name and line."""
    looked: list[str] = []

    def close(name: str, _known: object) -> list[str]:
        looked.append(name)
        return []

    monkeypatch.setattr("toold.sandbox.type_check_findings.close_names", close)
    code = "serch();" * 100
    result = [
        {"code": "unresolved-reference", "message": "Name `serch` used when not defined", "location": place}
        for place in ({"row": 2, "column": 8 * number + 1} for number in range(100))
    ]
    assert len(find_type_errors(json.dumps(result), prepare(Program(code, MODULES)), MODULES)) == 1
    assert looked == ["serch"]


@pytest.mark.parametrize(
    ("code", "rule", "message"),
    [
        ("x: int = 'a'", "invalid-assignment", 'Object of type `Literal["a"]` is not assignable to `int`'),
        ("return 1", "invalid-syntax", "`return` statement outside of a function"),
        ("open('x')", "unresolved-reference", "Name `open` used when not defined"),
        ("json.loads('1')", "unresolved-reference", "Name `json` used when not defined"),
        ("print(missing)", "unresolved-reference", "Name `missing` used when not defined"),
        ("import helper", "unresolved-import", "Cannot resolve imported module `helper`"),
        ("x.foo", "unresolved-attribute", "Object of type `int` has no attribute `foo`"),
    ],
)
def test_other_findings_are_not_reported(code: str, rule: str, message: str) -> None:
    """Programs have no type annotations, so other findings are left to the run."""
    named = code.find(message.split("`")[1])
    assert reported(code, rule, message, column=max(named, 0) + 1) == []


@pytest.mark.asyncio(loop_scope="module")
async def test_the_findings_of_the_engine_are_reported(run: Any, recorded_tools: Any) -> None:
    """The program is rejected before any of it runs."""
    code = "await crm.create_note(contact_id=1, text='x')\nreturn await crm.get_contact(contact='1')"
    with pytest.raises(ProgramRefusedError, match=r"line 2: No argument .*'contact_id'.*; line 2: Argument 'contact'"):
        await run(code)
    assert recorded_tools.calls == []
