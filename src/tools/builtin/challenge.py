"""``challenge``: a statement is examined by a model that is told to look for what is wrong with it."""

from typing import Final

from pydantic import Field

from ...providers import tagged
from ..completions import ModelQuestion, ask_within, read_files
from ..tool import Answer, Arguments, tool
from ..tool_context import ToolContext
from .chat import MAX_FILES, TIMEOUT_S

_SYSTEM: Final = """\
You examine a statement. Your only concern is whether it is true and whether acting on it is wise; whether anybody \
will like the verdict is not.

1. Restate in one sentence what is claimed, and which assumptions it rests on.
2. Look for the strongest case against it: facts that contradict it, cases that it does not cover, simpler \
explanations, costs that it leaves out. Where files are given, check it against them and name the places.
3. Look as hard for what supports it.
4. Give your verdict in the first line of the answer: holds, holds with limits, doubtful, or wrong. Then the reasons, \
the weightiest first; say what you could not check, and what would settle it.

Do not agree because it was said with confidence, and do not disagree to seem independent. A statement that is right \
is to be called right."""


class ChallengeArguments(Arguments):
    """A statement, and what to hold it against."""

    prompt: str = Field(min_length=1, description="The statement, plan or answer to examine, in full.")
    files: list[str] = Field(
        default=[], max_length=MAX_FILES, description="Paths of text files below the workspace to check it against."
    )
    model: str | None = Field(default=None, description="A model's id or alias, or auto; else the default one.")
    continuation_id: str | None = Field(default=None, description="Goes on with the conversation of this id.")


@tool("challenge", read_only=True, open_world=True, timeout_s=TIMEOUT_S)
async def challenge(arguments: ChallengeArguments, context: ToolContext) -> Answer:
    """Have a statement examined critically instead of agreed with: what speaks against it, what for it, and a verdict.

    Use it when you are about to agree with a claim, a plan or a correction. One question to one model.
    """
    question = ModelQuestion(
        f"Examine this statement:\n\n{tagged('statement', arguments.prompt)}",
        system=_SYSTEM,
        model=arguments.model,
        files=await read_files(arguments.files, context, numbered=True),
    )
    async with context.conversation(arguments.continuation_id) as conversation:
        asked = await ask_within(conversation, question, context, tool="challenge")
    return Answer(asked.text, {**asked.with_text(), "continuation_id": conversation.id})
