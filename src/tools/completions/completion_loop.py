"""A request and its answer, through the rounds that a vendor's built-in tools take."""

from dataclasses import dataclass, replace
from typing import Final

from ...protocol.error_codes import ProviderError
from ...providers import Completion, CompletionRequest, Delta, Message, follow_up, functions_wanted
from ..tool_context import ToolContext

MAX_COMPLETIONS: Final = 6
"""A model that still searches the web after so many is told to be at fault; each is paid for."""


@dataclass(frozen=True, slots=True)
class CompletionLoop:
    """The last of some completions."""

    completion: Completion
    number: int
    """How many completions it took."""
    messages: tuple[Message, ...]
    """What the last of them was asked with: the request's own messages, and those of the rounds before."""


async def complete(
    request: CompletionRequest, context: ToolContext, *, chosen_because: str | None = None, stream: bool = True
) -> CompletionLoop:
    """Ask until the model wants no built-in tool any more, or a function of the caller's, who has to answer it.

    Raises:
        CallError: what the vendor said; ProviderError where the model searches for ever.
    """

    def pass_on(delta: Delta) -> None:
        if delta.text:
            context.stream(delta.text)

    on_delta = pass_on if stream and context.streaming else None
    for number in range(1, MAX_COMPLETIONS + 1):
        completion = await context.complete(request, on_delta=on_delta, chosen_because=chosen_because)
        messages = None if functions_wanted(completion) else follow_up(request.messages, completion)
        if messages is None:
            return CompletionLoop(completion, number, request.messages)
        request = replace(request, messages=messages)
        context.progress(f"{request.model.id} searches the web", number)
    raise ProviderError(
        f"{request.model.id} searched the web {MAX_COMPLETIONS} times and gave no answer; ask for less at a time.",
        executed="yes",
    )
