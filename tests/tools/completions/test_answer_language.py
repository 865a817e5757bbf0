"""The operator's language for answers."""

from toold.providers import Message, TextPart
from toold.tools.completions.answer_language import messages_in_language

ASKED = Message("user", "Why?")


def test_a_conversation_gets_the_instruction_once() -> None:
    """At the end of the caller's system message, which stays the first one, or in a separate one."""
    own, first = messages_in_language([ASKED], "fr-FR")
    assert (own.role, first) == ("system", ASKED)
    assert "fr-FR" in str(own.content)
    joined, _ = messages_in_language([Message("system", "Be brief."), ASKED], "fr-FR")
    assert joined.content == f"Be brief.\n\n{own.content}"
    parts, _ = messages_in_language([Message("system", (TextPart("Be brief."),)), ASKED], "fr-FR")
    assert parts.content == (TextPart("Be brief."), TextPart(str(own.content)))
    assert messages_in_language([ASKED], None) == (ASKED,)
