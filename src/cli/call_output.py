"""Prints a call: progress and streamed text while it runs, its result at the end."""

import json
import sys
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from ..client import CallResult
from ..protocol.error_codes import CallError
from ..protocol.json_text import InvalidJsonError, parse_json
from ..protocol.tool_call import Metadata, Progress, continuation_line
from .paused_answer import is_paused, paused_lines
from .terminal_output import json_for_terminal, say, text_for_terminal

if TYPE_CHECKING:
    from rich.status import Status


class CallDisplay:
    """Displays a running call: progress on stderr (one updating line on a terminal), streamed text on stdout."""

    def __init__(self) -> None:
        self.streamed = False
        """Whether the text was printed as it arrived."""
        self._status: Status | None = None
        self._printed = ""

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("calling")
            self._status.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._clear()
        if self.streamed:
            say("")

    def progress(self, report: Progress) -> None:
        """Show progress; on a terminal only until the text begins, because progress would interrupt it. A line that a
        heartbeat repeats is printed once.
        """
        line = progress_line(report)
        if self._status is not None:
            from rich.text import Text

            self._status.update(Text(text_for_terminal(line)))
        elif line != self._printed and not (self.streamed and sys.stderr.isatty()):
            self._printed = line
            say(line, err=True)

    def chunk(self, text: str) -> None:
        """Print a chunk of the text."""
        self._clear()
        self.streamed = True
        say(text, nl=False)

    def _clear(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


def progress_line(report: Progress) -> str:
    """``message (3/10)``, with the count if it is known."""
    if report.done is None:
        return report.message
    total = "" if report.total is None else f"/{report.total:g}"
    return f"{report.message} ({report.done:g}{total})"


def print_result(result: CallResult) -> None:
    """Print the result's text. If the text is the result's data as JSON, it is pretty-printed on a terminal, and
    further notes go to stderr, so that stdout is only JSON. ``stderr_lines`` prints the line with the continuation id.
    For a paused call, print its requests.
    """
    if is_paused(result.structured):
        say("\n".join(paused_lines(result.structured)))
        return
    shown = [block for block in result.outputs if block.get("text") != _continuation(result)]
    result = replace(result, outputs=shown)
    first, *notes = [block["text"] for block in result.outputs if block.get("type") == "text"] or [""]
    if notes and result.structured is not None and _is_json_of(first, result.structured):
        print_result(replace(result, outputs=[{"type": "text", "text": first}]))
        say("\n".join(notes), err=True)
    elif sys.stdout.isatty() and result.structured is not None and _is_json_of(result.text, result.structured):
        from rich.console import Console
        from rich.highlighter import JSONHighlighter

        text = json_for_terminal(json.dumps(result.structured, indent=2, ensure_ascii=False))
        Console().print(JSONHighlighter()(text), soft_wrap=True)
    else:
        say(result.text)


def _continuation(result: CallResult) -> str | None:
    """The last line of the answer of a conversational tool; None for other tools."""
    data = result.structured
    if not isinstance(data, dict) or "continuation_id" not in data:
        return None
    return continuation_line(str(data["continuation_id"]))


def _is_json_of(text: str, value: object) -> bool:
    try:
        return bool(parse_json(text) == value)
    except InvalidJsonError:
        return False


def footer(metadata: Metadata) -> str:
    """One line for people: provider, model, tokens, cost and latency; ``about`` precedes estimates."""
    parts = [part for part in (metadata.provider, metadata.model) if part]
    if metadata.simulated:
        parts.append("simulated")
    if usage := metadata.usage:
        parts.append(f"{'about ' * usage.estimated}{usage.input_tokens}+{usage.output_tokens} tokens")
    costs = [metadata.cost] if metadata.cost else [part.cost for part in metadata.usage_by_model if part.cost]
    if costs:  # amounts in different currencies are listed, not added
        parts.append(" + ".join(f"{'about ' * cost.estimated}{cost.amount:.4f} {cost.currency}" for cost in costs))
    parts.append(f"{metadata.latency_ms / 1000:.2f} s")
    return " · ".join(parts)


def stderr_lines(result: CallResult, *, terminal: bool) -> list[str]:
    """The lines printed to stderr after a result: the tool's notice, for example of a truncated answer, and the footer.

    The footer is shown on terminals only, except that a simulated result is always marked as such.
    """
    notice = result.structured.get("notice") if isinstance(result.structured, dict) else None
    lines = [f"notice: {notice}"] if isinstance(notice, str) else []
    continuation = _continuation(result)
    if terminal and continuation is not None:
        lines.append(continuation)
    return [*lines, footer(result.metadata)] if terminal or result.metadata.simulated else lines


def json_answer(request_id: str, outcome: CallResult | CallError, metadata: Metadata | None) -> bytes:
    """One JSON object: request_id, ok, outputs, structured, error, metadata; missing values are null."""
    answer: dict[str, Any] = {
        "request_id": request_id,
        "ok": not isinstance(outcome, CallError),
        "outputs": [],
        "structured": None,
        "error": None,
        "metadata": metadata,
    }
    if isinstance(outcome, CallError):
        answer["error"] = outcome.to_tool_error()
    else:
        answer |= {"outputs": outcome.outputs, "structured": outcome.structured}
    return msgspec.json.encode(answer)
