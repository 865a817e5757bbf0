"""The tool ``clink``, which hands a task to a subagent: a program such as Claude Code, which asks its own model."""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, create_model

from ...protocol.error_codes import InvalidArgumentsError, ToolExecutionError
from ...providers import tagged
from ..completions import errors_of
from ..conversation import Turn
from ..former_arguments import FormerNames
from ..tool import Arguments, ToolOutput, tool
from ..tool_context import ToolContext
from ..tool_definition import Tool
from .subagent_output import SubagentAnswer, SubagentOutputError, read_output, shortened
from .subagent_process import SubagentRun, run_subagent, subagent_environment
from .subagent_settings import SubagentSettings

TIMEOUT_S: Final = 1800.0
"""Subagents work for minutes."""
MAX_SUBAGENTS: Final = 4
"""The number of subagents that run at the same time, each with up to hundreds of MiB; further calls wait, without a
permit."""
MAX_FILES: Final = 64
MAX_IMAGES: Final = 16
_QUOTED_CHARS: Final = 2000
"""The maximum characters of stdout that an error quotes."""


class ClinkArguments(Arguments):
    """A task for a subagent."""

    prompt: str = Field(min_length=1, description="The task. The subagent knows only this and the conversation.")
    cli_name: str
    role: str = "default"
    files: Annotated[list[str], FormerNames("absolute_file_paths", "relevant_files")] = Field(
        default=[],
        max_length=MAX_FILES,
        description="Paths of files or directories in the workspace; the subagent opens them itself.",
    )
    images: list[str] = Field(
        default=[], max_length=MAX_IMAGES, description="Paths of images in the workspace, given in the same way."
    )
    continuation_id: str | None = Field(default=None, description="Conversation to continue, from an earlier answer.")


def clink_tools(subagents: Mapping[str, SubagentSettings]) -> list[Tool]:
    """The tool ``clink`` for these subagents; empty without subagents."""
    if not subagents:
        return []
    permits = asyncio.Semaphore(MAX_SUBAGENTS)

    @tool("clink", read_only=False, destructive=True, open_world=True, timeout_s=TIMEOUT_S)
    async def clink(arguments: ClinkArguments, context: ToolContext) -> ToolOutput:
        """Hand a task to a subagent: a program that asks its own model and works in the workspace by itself.

        It may change files there, as far as its operator allows it. The text is its answer. `structured` has a
        `continuation_id` for follow-up prompts.
        """
        settings = subagents[arguments.cli_name]
        roles = settings.instructions
        if arguments.role not in roles:
            problem = f"{arguments.cli_name} has no role {arguments.role!r}; its roles are {', '.join(roles)}"
            raise InvalidArgumentsError(f"clink: role: {problem}.", details={"fields": {"role": problem}})
        cwd = await context.files.locate(".")
        files = [
            *await _located("files", arguments.files, context),
            *await _located("images", arguments.images, context),
        ]
        async with context.conversation(arguments.continuation_id) as conversation:
            prompt = subagent_prompt(roles[arguments.role], conversation.turns, arguments.prompt, files)
            async with context.without_permit(), permits:
                context.progress(f"{arguments.cli_name} is working")
                began = time.monotonic()
                env = subagent_environment(os.environ, settings.env)
                run = await run_subagent(settings.command, prompt, cwd=cwd, env=env)
                seconds = time.monotonic() - began
            answer = answer_of(run, arguments.cli_name, settings)
            text, cut = shortened(answer.text)
            names = tuple(path.name for path in files)
            conversation.add(Turn("user", arguments.prompt, tool="clink", files=names))
            conversation.add(Turn("assistant", text, tool="clink", model=answer.model or arguments.cli_name))
        data: dict[str, Any] = {"text": text, "cli_name": arguments.cli_name, "role": arguments.role}
        data |= {"model": answer.model} if answer.model else {}
        data |= {"reported_usage": answer.usage} if answer.usage else {}
        data |= {"truncated": True} if cut else {}
        return ToolOutput(text, {**data, "duration_s": round(seconds, 1), "continuation_id": conversation.id})

    return [replace(clink, arguments=_arguments(subagents))]


def _arguments(subagents: Mapping[str, SubagentSettings]) -> type[ClinkArguments]:
    """The argument model with the names of the subagents and their roles."""
    names = tuple(subagents)
    roles = tuple(dict.fromkeys(role for settings in subagents.values() for role in settings.instructions))
    name_type: Any = Literal[names]
    role_type: Any = Literal[roles]
    default: Any = names[0] if len(names) == 1 else ...
    return create_model(
        "ClinkArguments",
        __base__=ClinkArguments,
        __doc__=ClinkArguments.__doc__,
        cli_name=(name_type, Field(default=default, description="The subagent.")),
        role=(role_type, Field(default="default", description="The instructions before the prompt.")),
    )


async def _located(field: str, paths: Sequence[str], context: ToolContext) -> list[Path]:
    located = []
    for index, path in enumerate(paths):
        with errors_of(f"{field}.{index}"):
            if path.startswith(("data:", "https:", "http:")):
                raise InvalidArgumentsError("A subagent opens files of the workspace; save it there and send its path.")
            located.append(await context.files.locate(path))
    return located


def subagent_prompt(instructions: str, turns: Sequence[Turn], prompt: str, files: Sequence[Path]) -> str:
    """The prompt of a subagent: the instructions of its role, the conversation so far, the task and the files. Pure."""
    history = "\n\n".join(tagged(turn.role, turn.text) for turn in turns)
    paths = "\n".join(f"- {path}" for path in files)
    parts = (
        instructions,
        tagged("conversation", history) if history else "",
        prompt,
        f"Files that the task refers to; open them yourself:\n{paths}" if paths else "",
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def answer_of(run: SubagentRun, name: str, settings: SubagentSettings) -> SubagentAnswer:
    """The answer of a program that ended. Pure.

    Raises:
        ToolExecutionError: the program failed or reports an error, or its output has another form. The message
            quotes the end of stderr.
    """
    problem = (
        f"{name} exited with status {run.status}" if run.status >= 0 else f"{name} was ended by signal {-run.status}"
    )
    try:
        answer = read_output(run.stdout, settings.output)
    except SubagentOutputError as error:
        if run.status == 0:
            problem = f"{name} did not write what output = {settings.output!r} expects: {error}"
        raise _failure(problem, run, run.stdout.strip()[-_QUOTED_CHARS:]) from error
    if run.status != 0 or answer.failed:
        raise _failure(problem if run.status else f"{name} reports an error", run, answer.text[-_QUOTED_CHARS:])
    return answer


def _failure(problem: str, run: SubagentRun, said: str) -> ToolExecutionError:
    quoted = "; ".join(f"{label}: {text}" for label, text in (("it said", said), ("stderr", run.stderr)) if text)
    return ToolExecutionError(
        f"{problem}{f' ({quoted})' if quoted else ''}.",
        details={"exit_status": run.status},
        summary=f"A subagent failed with exit status {run.status}.",
    )
