"""``challenge``: a critical examination of a statement by one model."""

from typing import Final

from pydantic import Field

from ...providers import tagged
from ..completions import ModelQuestion, ask_within, expand_folders, read_files
from ..continued_work import continued
from ..tool import Arguments, ToolOutput, tool
from ..tool_context import ToolContext
from .chat import MAX_FILES, TIMEOUT_S

_SYSTEM: Final = """\
Examine a statement critically. Judge only whether it is true and whether acting on it is wise, not whether the \
verdict will please the reader.

1. Restate the claim and its assumptions in one sentence.
2. Build the strongest case against it: contradicting facts, uncovered cases, simpler explanations, ignored costs. If \
files are attached, check the statement against them and cite file and line.
3. Look just as hard for supporting evidence.
4. Give your verdict in the first line of the answer: holds, holds with limits, doubtful, or wrong. Then give the \
reasons, most important first. State what you could not check and what evidence would settle it.

Do not agree because the statement sounds confident, and do not disagree to appear independent. If the statement is \
right, say so."""


class ChallengeArguments(Arguments):
    """A statement, and files to check it against."""

    prompt: str = Field(min_length=1, description="The statement, plan or answer to examine, in full.")
    files: list[str] = Field(
        default=[], max_length=MAX_FILES, description="Paths of text files in the workspace to check it against."
    )
    model: str | None = Field(default=None, description="Model id or alias, or auto.")
    continuation_id: str | None = Field(default=None, description="Conversation to continue.")


@tool("challenge", read_only=True, open_world=True, timeout_s=TIMEOUT_S)
async def challenge(arguments: ChallengeArguments, context: ToolContext) -> ToolOutput:
    """Examine a statement critically: evidence against it, evidence for it, and a verdict.

    Use it before you agree with a claim, a plan or a correction. Makes one completion.
    """
    expanded = await expand_folders(arguments.files, context)
    question = ModelQuestion(
        f"Examine this statement:\n\n{tagged('statement', arguments.prompt)}",
        system=_SYSTEM,
        model=arguments.model,
        files=await read_files(expanded.paths, context, numbered=True, places=expanded.places),
    )
    async with continued(arguments.continuation_id, context) as conversation:
        result = await ask_within(conversation, question, context, tool="challenge", numbered=True)
    data = {**result.with_text(), **expanded.data(), "continuation_id": conversation.id}
    return ToolOutput(result.text, data, expanded.blocks())
