"""Calls as earlier servers listed them: each of their arguments is taken, and each change has a notice."""

from typing import Any, Final

import pytest
from toold.protocol.error_codes import ToolNotFoundError
from toold.tools import AdaptedValues, ToolCatalog, load_registry, shipped_toolsets
from toold.tools.argument_binding import bind_arguments
from toold.tools.builtin.chat import chat
from toold.tools.toolsets import FULL_TOOLSET

MODEL_OPTIONS: Final[dict[str, Any]] = {
    "model": "auto", "temperature": 0.5, "thinking_mode": "low", "use_websearch": True, "continuation_id": "c",
    "images": ["a.png"], "files": ["a.py"],
}  # fmt: skip
CALLS: Final[list[tuple[str, dict[str, Any], dict[str, Any]]]] = [
    (
        "chat",
        {
            "prompt": "?", "files": ["/w/a.py"], "images": ["/w/a.png"], "model": "glm-4.6", "temperature": 0.5,
            "thinking_mode": "max", "use_websearch": True, "stream": True, "continuation_id": "c",
        },
        {
            "prompt": "?", "files": ["/w/a.py"], "images": ["/w/a.png"], "model": "glm-4.6", "temperature": 0.5,
            "thinking": "max", "web_search": True, "continuation_id": "c",
        },
    ),
    ("chat", {"prompt": "?", "kimi_thinking": "enabled"}, {"prompt": "?", "thinking": True}),
    (
        "chat",
        {"prompt": "?", "absolute_file_paths": ["/w/a.py"], "working_directory_absolute_path": "/w"},
        {"prompt": "?", "files": ["/w/a.py"], "working_directory": "/w"},
    ),
    (
        "kimi_chat_with_tools",
        {
            "messages": "?", "tools": '[{"type": "function", "function": {"name": "f"}}]', "tool_choice": "auto",
            "temperature": 0.6, "stream": False, "use_websearch": False, "model": "auto",
        },
        {
            "messages": "?", "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "auto",
            "temperature": 0.6, "web_search": False, "model": "auto",
        },
    ),
    (
        "kimi_capture_headers",
        {
            "messages": [{"role": "user", "content": "?"}], "model": "kimi-k2-0711-preview", "temperature": 0.6,
            "session_id": "s", "call_key": None, "tool_name": "kimi_capture_headers",
        },
        {
            "messages": [{"role": "user", "content": "?"}], "model": "kimi-k2-0711-preview", "temperature": 0.6,
            "cache_key": "s",
        },
    ),
    ("kimi_manage_files", {"operation": "list", "limit": 5, "dry_run": None}, {"operation": "list", "limit": 5}),
    (
        "kimi_upload_files",
        {"files": ["a.pdf"], "purpose": "assistants"},
        {"files": ["a.pdf"], "purpose": "file-extract"},
    ),
    ("kimi_intent_analysis", {"prompt": "?", "context": "c", "use_websearch": True}, {"prompt": "?", "context": "c"}),
    (
        "glm_payload_preview",
        {
            "prompt": "?", "model": "glm-4.5-flash", "temperature": 0.3, "system_prompt": None, "use_websearch": True,
            "tools": [], "tool_choice": None,
        },
        {
            "prompt": "?", "model": "glm-4.5-flash", "temperature": 0.3, "web_search": True, "system": None,
            "tools": [], "tool_choice": None,
        },
    ),
    ("smart_file_download", {"file_id": "f", "destination": "/w/"}, {"file_id": "f"}),
    (
        "activity",
        {
            **MODEL_OPTIONS, "lines": 200, "filter": "x", "source": "auto", "since": "2025-01-01",
            "until": "2025-01-02", "structured": True,
        },
        {"recent": 100},
    ),
    ("health", {"tail_lines": 50}, {}),
    (
        "status",
        {"tail_lines": 30, "include_tools": True, "doctor": True, "probe": True},
        {"recent": 30, "include_tools": True, "checks": True},
    ),
    ("toolcall_log_tail", {"n": 50, "path": "/w/log"}, {"limit": 50}),
    ("provider_capabilities", {"include_tools": True, "show_advanced": False, "invalidate_cache": True}, {}),
    ("listmodels", {"model": "auto"}, {}),
    ("version", {"model": "auto"}, {}),
    ("self-check", {"log_lines": 40}, {}),
    ("echo", {**MODEL_OPTIONS, "prompt": "x", "delay_ms": 0, "include_metadata": False}, {"text": "x", "delay_ms": 0}),
]  # fmt: skip


REGISTRY: Final = load_registry()


@pytest.mark.parametrize(("name", "sent", "current"), CALLS)
def test_each_former_argument_is_taken(name: str, sent: dict[str, Any], current: dict[str, Any]) -> None:
    """The arguments lead to the same values as current ones, with a notice for each that is not listed now."""
    tool = REGISTRY.get(name)
    bound, expected = bind_arguments(tool, sent), bind_arguments(tool, current)
    assert isinstance(bound, AdaptedValues)
    assert bound.values == expected
    for argument in sent.keys() - current.keys():
        assert any(argument in notice for notice in bound.notices), argument


def test_a_changed_default_is_noticed() -> None:
    """A call in a former form that omits an argument whose default has changed says so."""
    silent = bind_arguments(chat, {"prompt": "?", "thinking_mode": "low", "web_search": False})
    told = bind_arguments(chat, {"prompt": "?", "thinking_mode": "low"})
    assert isinstance(silent, AdaptedValues)
    assert isinstance(told, AdaptedValues)
    (notice,) = set(told.notices) - set(silent.notices)
    assert notice.startswith("web_search: the model searches the web only if this is true")


def test_a_former_tool_name_is_found() -> None:
    """``test_echo`` is ``echo``. It is not listed, and unknown if arguments are strict."""
    lenient, strict = (
        ToolCatalog(REGISTRY, shipped_toolsets(), FULL_TOOLSET, strict_arguments=strict) for strict in (False, True)
    )
    assert lenient.find_tool(FULL_TOOLSET, "test_echo").name == "echo"
    assert "test_echo" not in {info.name for info in lenient.view(FULL_TOOLSET).infos}
    with pytest.raises(ToolNotFoundError):
        strict.find_tool(FULL_TOOLSET, "test_echo")
