"""The messages of a role, grouped into exchanges, which are summarized as a whole. Pure.

An exchange is a turn of the model with the results of all its calls, or a message of the conversation with its answer.
So a call is never separated from its result.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from ..completions import IMAGE_TOKENS, MESSAGE_TOKENS, estimate_tokens
from ..conversation import Turn
from .agent_messages import Row, user_row

SUMMARY_TOOL: Final = "agent_summary"
"""The ``Turn.tool`` of a turn that contains the ``conversation_note`` of earlier turns."""
_OF_CONVERSATION: Final = "[Summary of the earlier conversation, whose messages were removed]"
_OF_WORK: Final = "[Summary of what you have done so far, whose messages were removed]"
_CLOSED: Final = "[End of the summary]"


@dataclass(frozen=True)
class Exchange:
    """Messages that belong together."""

    rows: tuple[Row, ...]
    handles: tuple[str, ...] = ()
    """The handle of each row that is a tool's result; an empty text if there is none."""
    name: str = ""
    """The name of the turn's child call, such as ``t3``."""
    until: float = 0.0
    """The time of the exchange's latest turn of the conversation."""

    @cached_property
    def chars(self) -> int:
        """The number of characters, which is never less than the number of tokens."""
        return sum(len(text) for row in self.rows for text in _texts(row)) + len(self.rows) * MESSAGE_TOKENS

    @cached_property
    def tokens(self) -> int:
        """The estimated number of tokens."""
        return sum(estimate_tokens(_texts(row)) for row in self.rows) + len(self.rows) * MESSAGE_TOKENS


@dataclass(frozen=True)
class Dialogue:
    """All messages of a role: instructions, the conversation's earlier messages, the request, and its own turns."""

    system: str
    request: str
    earlier: tuple[Exchange, ...] = ()
    done: tuple[Exchange, ...] = ()
    summary: str = ""
    """The summary of the conversation's messages before ``earlier``."""
    work: str = ""
    """The summary of everything before ``done``; if set, ``earlier`` and ``summary`` are empty."""
    images: tuple[int, ...] = ()
    """The request's images, as indexes of the run's images."""

    @property
    def rows(self) -> list[Row]:
        """The messages of the next turn."""
        request = f"{self.request}\n\n{_OF_WORK}\n{self.work}\n{_CLOSED}" if self.work else self.request
        after = [row for exchange in self.earlier for row in exchange.rows] + [user_row(request, self.images)]
        if self.summary:
            note = conversation_note(self.summary)
            if after[0]["role"] == "user":  # joined, because some models refuse two consecutive messages of the user
                after[0] = {**after[0], "content": f"{note}\n\n{after[0]['content']}"}
            else:
                after.insert(0, user_row(note))
        done = [row for exchange in self.done for row in exchange.rows]
        instructions = [{"role": "system", "content": self.system}] if self.system else []
        return [*instructions, *after, *done]

    @property
    def chars(self) -> int:
        """The number of characters, which is never less than the number of tokens and is quick to count."""
        around = len(self.system) + len(self.request) + len(self.summary) + len(self.work) + 4 * MESSAGE_TOKENS
        around += len(self.images) * IMAGE_TOKENS
        return around + sum(exchange.chars for exchange in (*self.earlier, *self.done))

    @property
    def tokens(self) -> int:
        """The estimated number of tokens."""
        return self.tokens_around + sum(exchange.tokens for exchange in (*self.earlier, *self.done))

    @property
    def tokens_around(self) -> int:
        """The estimated tokens of the instructions, the request and the summaries, which stay."""
        texts = estimate_tokens((self.system, self.request, self.summary, self.work))
        return texts + 4 * MESSAGE_TOKENS + len(self.images) * IMAGE_TOKENS

    def with_exchange(self, exchange: Exchange) -> "Dialogue":
        return replace(self, done=(*self.done, exchange))

    def older(self, keep: int, tokens: int) -> int:
        """The number of the oldest exchanges that can be replaced. The latest ``keep`` exchanges stay, or as many of
        them as fit into ``tokens``. Results that the model has not read yet always stay.
        """
        exchanges = (*self.earlier, *self.done)
        kept = 0
        for exchange in reversed(exchanges[-keep:]):
            tokens -= exchange.tokens
            if tokens < 0 and (kept or not self.done):
                break
            kept += 1
        return len(exchanges) - kept

    def oldest(self, count: int) -> tuple[Exchange, ...]:
        return (*self.earlier, *self.done)[:count]

    def with_oldest(self, exchanges: Sequence[Exchange]) -> "Dialogue":
        """The dialogue with its oldest exchanges replaced by these."""
        everything = (*exchanges, *(*self.earlier, *self.done)[len(exchanges) :])
        border = len(self.earlier)
        return replace(self, earlier=everything[:border], done=everything[border:])

    def summarized(self, count: int, text: str) -> "Dialogue":
        """The dialogue with its oldest ``count`` exchanges and earlier summaries replaced by this summary."""
        if count <= len(self.earlier) and not self.work:
            return replace(self, summary=text, earlier=self.earlier[count:])
        return replace(self, summary="", work=text, earlier=(), done=self.done[count - len(self.earlier) :])

    def transcript(self, count: int) -> str:
        """The oldest ``count`` exchanges as text, preceded by the earlier summary, which the new summary also
        replaces.
        """
        parts = [f"Summary of what came before:\n{self.summary or self.work}"] if self.summary or self.work else []
        parts += [part for each in self.earlier[:count] for row in each.rows for part in _spoken(row)]
        if count > len(self.earlier):
            parts += [
                part for each in self.done[: count - len(self.earlier)] for row in each.rows for part in _spoken(row)
            ]
            parts.insert(0, f"The user's request, which stays: {self.request[:_REQUEST_CHARS]}")
        return "\n\n".join(parts)


_REQUEST_CHARS: Final = 4000
"""The number of characters of the request in a summary's transcript, so that the model knows what matters."""


def conversation_note(summary: str) -> str:
    """The message with the summary of a conversation's earlier messages."""
    return f"{_OF_CONVERSATION}\n{summary}\n{_CLOSED}"


def begin_dialogue(system: str, history: Iterable[Turn], request: str, images: tuple[int, ...] = ()) -> Dialogue:
    """The messages before a role's first turn. ``images`` are the request's images, as indexes of the run's images."""
    turns = list(history)
    summary = ""
    if turns and turns[0].tool == SUMMARY_TOOL:
        note = turns.pop(0).text
        summary = note.removeprefix(f"{_OF_CONVERSATION}\n").removesuffix(f"\n{_CLOSED}")
    groups: list[list[Turn]] = []
    for turn in turns:
        if turn.role == "user" or not groups:
            groups.append([])
        groups[-1].append(turn)
    earlier = tuple(
        Exchange(tuple({"role": turn.role, "content": turn.text} for turn in group), until=group[-1].at)
        for group in groups
    )
    return Dialogue(system, request, earlier, summary=summary, images=images)


def _texts(row: Row) -> list[str]:
    calls = [text for call in row.get("tool_calls", ()) for text in (call["name"], call["arguments"])]
    return [row["content"], row.get("reasoning", ""), *calls]


def _spoken(row: Row) -> list[str]:
    if row["role"] == "tool":
        return [f"Result of {row['tool_name']}: {row['content']}"]
    calls = [f"The assistant called {call['name']}({call['arguments']})" for call in row.get("tool_calls", ())]
    speaker = "The assistant" if row["role"] == "assistant" else "The user"
    return [f"{speaker}: {row['content']}", *calls] if row["content"] else calls
