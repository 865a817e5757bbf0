"""Environment variables of earlier servers."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
from toold.daemon.checks.doctor import former_variables
from toold.daemon.config.former_prompt_variables import PROMPT_VARIABLES
from toold.daemon.config.former_variables import TOOL_VARIABLES, UNUSED, VARIABLES, read_former, unused_variables
from toold.daemon.config.setting_sources import variables_in
from toold.providers import ZAI_BASE_URL

from .loaded_settings import load

PAGE: Final = (Path(__file__).parents[3] / "docs/migrating.md").read_text(encoding="utf-8")
EXAMPLES: Final[dict[str, tuple[str, object]]] = {
    "host": ("::1", "::1"),
    "port": ("3010", 3010),
    "token": ("a-token-of-24-characters", "a-token-of-24-characters"),
    "hello_timeout_s": ("15", 15.0),
    "ping_interval_s": ("30", 30.0),
    "ping_timeout_s": ("30", 30.0),
    "progress_interval_s": ("2.5", 2.5),
    "max_frame_bytes": ("33554432", 33_554_432),
    "result_ttl_s": ("600", 600.0),
    "max_running": ("12", 12),
    "max_running_per_session": ("4", 4),
    "kimi_concurrency": ("3", 3),
    "glm_concurrency": ("2", 2),
    "default_timeout_s": ("45", 45.0),
    "kimi_base_url": ("https://kimi.example/v1", "https://kimi.example/v1"),
    "glm_base_url": ("https://glm.example/v4", "https://glm.example/v4"),
    "glm_api_key": ("key", "key"),
    "default_model": ("glm-4.6", "glm-4.6"),
    "kimi_allowed_models": ("kimi-k3, kimi-k2.6", ("kimi-k3", "kimi-k2.6")),
    "glm_allowed_models": ("glm-4.6", ("glm-4.6",)),
    "locale": ("fr-FR", "fr-FR"),
    "conversations_keep_days": ("36", 2),
    "log_level": ("CRITICAL", "error"),
}
"""Setting → a text of the variable, and the setting's value."""


def plain(value: Any) -> object:
    return value.get_secret_value() if hasattr(value, "get_secret_value") else value


@pytest.mark.parametrize("row", VARIABLES, ids=lambda row: row.name)
def test_each_variable_sets_its_setting(tmp_path: Path, row: Any) -> None:
    """The value arrives, a note names the new setting, and the setting's own variable overrides it."""
    text, value = EXAMPLES[row.setting]
    settings = load(cwd=tmp_path, **{row.name: text})
    assert plain(getattr(settings, row.setting)) == value
    assert settings.origins[row.setting] == row.name
    (note,) = settings.notes
    assert f"TOOLD_{row.setting.upper()}" in note
    assert variables_in({row.name: text}) == [row.name]
    current = "2" if row.setting == "conversations_keep_days" else text.replace("CRITICAL", "error")
    overridden = load(cwd=tmp_path, **{row.name: "!", f"TOOLD_{row.setting.upper()}": current})
    assert overridden.origins[row.setting] != row.name
    assert "is ignored" in overridden.notes[0]


def test_a_key_of_z_ai_goes_to_z_ai(tmp_path: Path) -> None:
    """Unless an address or another key is set."""
    assert load(cwd=tmp_path, ZAI_API_KEY="key").glm_base_url == ZAI_BASE_URL
    assert load(cwd=tmp_path, ZAI_API_KEY="key", GLM_API_URL="http://a.example").glm_base_url == "http://a.example"
    other = load(cwd=tmp_path, ZAI_API_KEY="key", GLM_API_KEY="other")
    assert (plain(other.glm_api_key), other.glm_base_url == ZAI_BASE_URL) == ("other", False)


def test_the_file_overrides_former_variables(tmp_path: Path) -> None:
    """An old variable never changes what toold.toml says."""
    (tmp_path / "toold.toml").write_text('default_model = "glm-4.6"\ndefault_toolset = "code"\n')
    settings = load(cwd=tmp_path, DEFAULT_MODEL="kimi-k3", TOOL_PROFILE="lean")
    assert (settings.default_model, settings.default_toolset) == ("glm-4.6", "code")
    assert all("is ignored" in note for note in settings.notes)


def test_an_invalid_value_of_a_common_name_is_a_note(tmp_path: Path) -> None:
    """Other programs may have set the variable, so the daemon starts."""
    settings = load(cwd=tmp_path, DEFAULT_MODEL="gpt-5.2", LOG_LEVEL="trace", TOOL_PROFILE="huge")
    assert (settings.default_model, settings.log_level, settings.default_toolset) == (None, "info", "standard")
    model, level, profile = settings.notes
    assert "DEFAULT_MODEL is ignored: default_model Unknown model 'gpt-5.2'" in model
    assert "did you mean" in level or "must be" in level
    assert "lean" in profile


def test_unknown_models_do_not_lift_a_restriction(tmp_path: Path) -> None:
    """The known ones stay the only allowed ones, and the note names the others."""
    settings = load(cwd=tmp_path, GLM_ALLOWED_MODELS="glm-4.6,glm-9")
    assert settings.glm_allowed_models == ("glm-4.6",)
    assert "without glm-9" in settings.notes[0]


@pytest.mark.parametrize(
    ("env", "toolset", "contains", "lacks"),
    [
        ({"TOOL_PROFILE": "lean"}, "lean", "chat", "planner"),
        ({"DISABLED_TOOLS": "analyze, refactor"}, "former", "chat", "analyze"),
        ({"ENABLED_TOOLS": "chat,debug"}, "former", "debug", "planner"),
        ({"TOOL_PROFILE": "lean", "DISABLED_TOOLS": "debug"}, "former", "chat", "planner"),
    ],
)
def test_the_tools_are_a_toolset(tmp_path: Path, env: dict[str, str], toolset: str, contains: str, lacks: str) -> None:
    """The default toolset has the tools that the variables select."""
    settings = load(cwd=tmp_path, **env)
    assert settings.default_toolset == toolset
    if toolset in settings.toolsets:
        assert settings.toolsets[toolset].contains(contains)
        assert not settings.toolsets[toolset].contains(lacks)
    assert [note.partition(" ")[0] for note in settings.notes] == list(env)


def test_the_doctor_lists_what_is_read_and_what_has_no_effect(tmp_path: Path) -> None:
    """Variables without an equivalent are grouped by the reason; names of today are not among them."""
    env = {"EXAI_WS_PORT": "3010", "OPENAI_API_KEY": "x", "XAI_API_KEY": "y", "KIMI_BASE_URL": "http://a.example"}
    env |= {"GLM_TIMEOUT_SECS": "9", "EX_ALLOW_EXTERNAL_PATHS": "true", "OTHER": "1", "REDIS_HOST": ""}
    messages = [check.message for check in former_variables(load(cwd=tmp_path, **env), env)]
    assert messages[0].startswith("EXAI_WS_PORT is read as port")
    assert "no effect: OPENAI_API_KEY, XAI_API_KEY: [providers.NAME] in toold.toml adds other vendors" in messages
    unused = {"OPENAI_API_KEY", "XAI_API_KEY", "GLM_TIMEOUT_SECS", "EX_ALLOW_EXTERNAL_PATHS"}
    assert set(unused_variables(env)) == unused


def test_the_page_has_each_variable() -> None:
    """docs/migrating.md has a row for each variable that is read, with its setting, and each that has no effect."""
    part = PAGE.partition("\n### Environment variables\n")[2].partition("\n### ")[0].partition("\n## ")[0]
    rows = [line.split(" | ") for line in part.splitlines() if line.startswith("| `")]
    read = {name: now for before, now in rows for name in re.findall(r"`([A-Z_*]+)`", before)}
    for row in VARIABLES:
        assert f"`{row.setting}`" in read.pop(row.name), row.name
    for name in TOOL_VARIABLES:
        assert "default_toolset" in read.pop(name)
    for name in PROMPT_VARIABLES:
        assert "[prompts" in read.pop(name), name
    for glob, reason in UNUSED.items():
        assert reason in read.pop(glob), glob
    assert not read


def test_settings_elsewhere_are_kept() -> None:
    """The pure function: values only for settings that nothing else sets."""
    former = read_former({"EXAI_WS_PORT": "1", "EXAI_WS_HOST": "::1"}, {"port"})
    assert [(value.setting, value.value) for value in former.values] == [("host", "::1")]


def test_variables_about_prompts(tmp_path: Path) -> None:
    """They set the table, except those without a server or with an invalid value; toold.toml overrides them."""
    variables = {
        "PHOENIX_ENDPOINT": "http://phoenix:6006",
        "PHOENIX_API_KEY": "key",
        "PHOENIX_PROMPT_TAG": "staging",
        "LITELLM_API_KEY": "key",
        "REGISTRY_URL": "registry",
        "PROMPT_FILE": "one.txt",
    }
    settings = load(cwd=tmp_path, **variables)
    phoenix = settings.prompts.phoenix
    assert phoenix is not None
    assert phoenix.key is not None
    assert (phoenix.url, phoenix.key.env, phoenix.tag) == ("http://phoenix:6006", "PHOENIX_API_KEY", "staging")
    assert (phoenix.allow_private, settings.prompts.default_file) == (True, tmp_path / "one.txt")
    assert str(settings.prompts) == "inline, phoenix, file"
    assert {note for note in settings.notes if "ignored" in note} == {
        "LITELLM_API_KEY is ignored: LITELLM_URL is not set",
        "REGISTRY_URL is ignored: registry.url must be a URL that starts with http:// or https://",
    }
    (tmp_path / "toold.toml").write_text('[prompts]\norder = ["inline"]\n')
    assert str(load(cwd=tmp_path, **variables).prompts) == "inline"
