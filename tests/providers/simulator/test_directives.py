"""What a prompt may ask of the simulator."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.providers.simulator.directives import DirectiveError, Directives, read_directives, without_directives


@pytest.mark.parametrize(
    ("text", "wish"),
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
def test_directives_are_read(text: str, wish: Directives) -> None:
    """Flags, numbers, words, and JSON; several in one pair of brackets or in several."""
    assert read_directives(text) == wish


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[sim:explode]]", "unknown setting; known: status, code"),
        ("[[sim:status=many]]", "status must be int"),
        ("[[sim:delay]]", "delay must be float"),
        ("[[sim:args={]]", "args must be JSON"),
        ("[[sim:!]]", "unknown setting"),
    ],
)
def test_a_wrong_directive_says_what_is_wrong(text: str, message: str) -> None:
    """A typing error in a test must not pass for a wish for nothing."""
    with pytest.raises(DirectiveError, match=message):
        read_directives(text)


@given(st.text())
def test_text_without_directives_stays(text: str) -> None:
    """Ordinary text asks for nothing and is left as it is, but for blanks around it."""
    if "[[sim:" not in text:
        assert read_directives(text) == Directives()
        assert without_directives(text) == text.strip()


def test_directives_are_not_part_of_the_words() -> None:
    """What is asked of the simulator is not what is asked of the model."""
    assert without_directives("Hello. [[sim:hang]]") == "Hello."


class Counting(str):
    """A text that counts how often something is looked for in it."""

    __slots__ = ("looks",)

    def find(self, *where: Any) -> int:
        self.looks: int = getattr(self, "looks", 0) + 1
        return super().find(*where)


def test_beginnings_without_an_end_are_looked_at_once() -> None:
    """However many brackets a prompt opens and never closes, their end is looked for once: nothing grows with n²."""
    text = Counting("[[sim:" * 10_000)
    assert read_directives(text) == Directives()
    assert text.looks == 2
