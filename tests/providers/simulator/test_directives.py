"""Directives by which a prompt controls the simulator."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.providers.simulator.directives import DirectiveError, Directives, read_directives, without_directives


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Nothing.", Directives()),
        ("a [[sim:status=429 retry_after=2]] b", Directives(status=429, retry_after=2.0)),
        ("[[sim:hang]] and [[sim:delay=1.5]]", Directives(hang=True, delay=1.5)),
        ("[[sim:stream_delay=0.1 hang_after=3]]", Directives(stream_delay=0.1, hang_after=3)),
        ("[[sim:say=two  words = here]]", Directives(say="two  words = here")),
        ('[[sim:tool=echo args={"a": [1, 2]}]]', Directives(tool="echo", args={"a": [1, 2]})),
        ("[[sim:status=400 code=1301]]", Directives(status=400, code="1301")),
        ("[[sim: too_long ]]", Directives(too_long=True)),
        ("[[sim:]]", Directives()),
    ],
)
def test_directives_are_read(text: str, expected: Directives) -> None:
    """Flags, numbers, words and JSON are read. One pair of brackets can hold several directives."""
    assert read_directives(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[sim:explode]]", "unknown setting; known: status, code"),
        ("[[sim:status=many]]", "status must be int"),
        ("[[sim:delay]]", "delay must be float"),
        ("[[sim:args={]]", "args must be JSON"),
        ("[[sim:!]]", "unknown setting"),
        ("[[sim:turn=1]]", "unknown setting"),
        ("[[sim:script={}]]", "must be a JSON list"),
        ("[[sim:script=[1]]]", "item 0 must be an object with text"),
        ('[[sim:script=[{}, {"txt": "a"}]]]', "item 1 has the unknown key 'txt'; known: text"),
        ('[[sim:script=[{"text": 1}]]]', "item 0: text has the wrong type: 1"),
        ('[[sim:script=[{"calls": [{"arguments": {}}]}]]]', "item 0: calls: name is missing"),
        ('[[sim:script=[{"usage": {"tokens": 1}}]]]', "unknown key 'tokens'; known: input_tokens"),
        ('[[sim:script=[{"text": "a"} and [[more]]', "script must be JSON"),
    ],
)
def test_invalid_directive_is_refused(text: str, message: str) -> None:
    """An invalid directive raises an error instead of being ignored, so that a typing error in a test is noticed."""
    with pytest.raises(DirectiveError, match=message):
        read_directives(text)


@given(st.text())
def test_text_without_directives_is_unchanged(text: str) -> None:
    """Ordinary text has no directives and stays unchanged, except that surrounding spaces are removed."""
    if "[[sim:" not in text:
        assert read_directives(text) == Directives()
        assert without_directives(text) == text.strip()


def test_directives_are_removed_from_the_prompt() -> None:
    """The prompt that the simulated model answers does not contain the directives."""
    assert without_directives("Hello. [[sim:hang]]") == "Hello."


class Counting(str):
    """A string that counts the calls of its ``find`` method."""

    __slots__ = ("looks",)

    def find(self, *where: Any) -> int:
        self.looks: int = getattr(self, "looks", 0) + 1
        return super().find(*where)


def test_unclosed_directives_are_scanned_once() -> None:
    """If a prompt opens many brackets and closes none, the closing bracket is searched once, so the cost is not
    quadratic.
    """
    text = Counting("[[sim:" * 10_000)
    assert read_directives(text) == Directives()
    assert text.looks == 2


def test_a_script_may_contain_brackets_and_scripts() -> None:
    """The directive ends after the script's JSON, not at the first closing brackets."""
    inner = '[[sim:script=[{"text": "[[1]]"}]]]'
    text = (
        f'Go. [[sim:script=[{{"calls": [{{"name": "agent", "arguments": {{"input": {json.dumps(inner)}}}}}]}}]]] Now.'
    )
    directives = read_directives(text)
    assert json.loads(directives.script[0].turn.calls[0][1]) == {"input": inner}
    assert without_directives(text) == "Go.  Now."
    assert read_directives(inner).script[0].turn.text == "[[1]]"
