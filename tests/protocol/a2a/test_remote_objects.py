"""Whatever an agent sends as its card or its answer is read, or refused with a reason."""

from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.a2a.remote_card import UnusableCardError, read_card
from toold.protocol.a2a.remote_task import UnreadableAgentAnswerError, read_event, read_remote_task

NAMES = st.sampled_from(
    [
        *("name", "description", "supportedInterfaces", "url", "protocolBinding", "protocolVersion", "capabilities"),
        *("streaming", "skills", "id", "tags", "examples", "preferredTransport", "additionalInterfaces", "tenant"),
        *("task", "message", "statusUpdate", "artifactUpdate", "kind", "status", "state", "artifacts", "artifact"),
        *("parts", "text", "data", "raw", "file", "uri", "bytes", "taskId", "contextId", "append", "messageId"),
    ]
)
VALUES = st.sampled_from(["TASK_STATE_WORKING", "completed", "task", "message", "JSONRPC", "1.0", "0.3.0", "http://["])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | VALUES
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=6), max_leaves=14
)


@given(JSON)
def test_any_object_is_read_or_refused(value: Any) -> None:
    """No JSON raises anything else than the error of its reader."""
    with suppress(UnusableCardError):
        read_card(value)
    for read in (read_event, read_remote_task):
        with suppress(UnreadableAgentAnswerError):
            read(value)
