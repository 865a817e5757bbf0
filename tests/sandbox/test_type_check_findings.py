"""Which findings of the type checker are told: those alone that would fail for certain."""

import json
from typing import Any

import pytest
from toold.sandbox import Program, ProgramModule, ProgramRefusedError
from toold.sandbox.program import prepare
from toold.sandbox.type_check_findings import MOST, is_certain, mistakes_in

MODULES = {"crm": ProgramModule(frozenset({"search", "get_contact"}), lambda _chosen: "")}


def told(code: str, rule: str, message: str, *, line: int = 1, column: int = 1) -> list[str]:
    """What is made of one finding in a line of the program."""
    finding = {"code": rule, "message": message, "location": {"row": line + 1, "column": column}}
    return mistakes_in(json.dumps([finding, finding]), prepare(Program(code, MODULES)), MODULES)


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
def test_a_type_is_wrong_where_no_value_of_it_fits(expected: str, found: str, certain: bool) -> None:
    """A union, a type that is not known, an object: what may be right when it runs, is not told."""
    assert is_certain(expected, found) is certain


def test_a_call_that_is_used_before_it_is_awaited_is_told() -> None:
    """By whatever rule; but a coroutine may be given to what takes one."""
    used = "Object of type `CoroutineType[Any, Any, Any]` is not awaited"
    wants = "Argument to function `f` is incorrect: Expected `Awaitable[int]`, found `CoroutineType[Any, Any, str]`"
    assert told("crm.search()", "unused-awaitable", used) == [
        "line 1: a call is used before it is awaited; write `await` in front of it"
    ]
    assert told("f(crm.search())", "invalid-argument-type", wants) == []


def test_wrong_arguments_of_tools_alone_are_told() -> None:
    """A function of the program's own is its own affair, and so is what is spread out of a dict."""
    missing = "No argument provided for required parameter `query` of function `{}`"
    wrong = "Argument to function `search` is incorrect: Expected `str`, found `int`"
    assert told("await crm.search()", "missing-argument", missing.format("search")) == [
        "line 1: No argument provided for required parameter 'query' of function 'search'"
    ]
    assert told("f()", "missing-argument", missing.format("f")) == []
    assert told("await crm.search(query=3)", "invalid-argument-type", wrong, column=18) == [
        "line 1: an argument of search should be str, not int"
    ]
    assert told("await crm.search(**d)", "invalid-argument-type", wrong, column=18) == []


def test_an_unknown_tool_is_told_with_the_names_that_are_close() -> None:
    """By its module, without a module, or with a module that there is not."""
    member = "Module `crm` has no member `serch`"
    assert told("await crm.serch()", "unresolved-attribute", member) == [
        "line 1: there is no crm.serch; did you mean 'search'?"
    ]
    assert told("await crn.search()", "unresolved-reference", "Name `crn` used when not defined", column=7) == [
        "line 1: there is no module 'crn'; did you mean 'crm'?"
    ]
    assert told("await search()", "unresolved-reference", "Name `search` used when not defined", column=7) == [
        "line 1: there is no function 'search'; did you mean 'crm.search'?"
    ]


def test_of_many_mistakes_the_first_are_told() -> None:
    """Nobody mends thousands at a time."""
    found = [
        {
            "code": "unresolved-attribute",
            "message": f"Module `crm` has no member `serch{number}`",
            "location": {"row": 2, "column": 1},
        }
        for number in range(100)
    ]
    assert len(mistakes_in(json.dumps(found), prepare(Program("x", MODULES)), MODULES)) == MOST


def test_the_same_mistake_in_one_line_is_looked_into_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is made there: to look for close names takes long."""
    looked: list[str] = []

    def close(name: str, _known: object) -> list[str]:
        looked.append(name)
        return []

    monkeypatch.setattr("toold.sandbox.type_check_findings.close_names", close)
    code = "serch();" * 100
    found = [
        {"code": "unresolved-reference", "message": "Name `serch` used when not defined", "location": place}
        for place in ({"row": 2, "column": 8 * number + 1} for number in range(100))
    ]
    assert len(mistakes_in(json.dumps(found), prepare(Program(code, MODULES)), MODULES)) == 1
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
def test_nothing_else_is_told(code: str, rule: str, message: str) -> None:
    """Programs are written without types: it is left to the run."""
    named = code.find(message.split("`")[1])
    assert told(code, rule, message, column=max(named, 0) + 1) == []


@pytest.mark.asyncio(loop_scope="module")
async def test_findings_are_those_of_the_engine(run: Any, world: Any) -> None:
    """Nothing of the program has run when it is refused."""
    code = "await crm.create_note(contact_id=1, text='x')\nreturn await crm.get_contact(contact='1')"
    with pytest.raises(ProgramRefusedError, match=r"line 2: No argument .*'contact_id'.*; line 2: Argument 'contact'"):
        await run(code)
    assert world.made == []
