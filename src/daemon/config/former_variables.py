"""Environment variables of earlier servers (EX-AI-MCP-Server, PAL), and the settings that they set. Pure.

They rank below ``toold.toml``, so a new setting always overrides an old variable. Many of them have common names, which
other programs use too, so an invalid value is a note and not an error.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from ...protocol.error_codes import InvalidArgumentsError
from ...providers import ZAI_BASE_URL, ModelCatalog
from ...tools import AUTO, DEFAULT_TOOLSET, setting_message, shipped_toolsets
from .former_agent_variables import former_agent
from .former_prompt_variables import PROMPT_VARIABLES, former_prompts
from .settings import ENV_PREFIX, Settings

FORMER_TOOLSET: Final = "former"
"""The toolset that the variables about tools define."""

_TOOLS_SETTING: Final = "default_toolset"


@dataclass(frozen=True, slots=True)
class FormerVariable:
    """A variable that is read: its setting, and the conversion of its value to the setting's value."""

    name: str
    setting: str
    convert: Callable[[str], object] = str
    also: Mapping[str, str] | None = None
    """Further settings that the variable sets."""
    remark: Callable[[str], str] = lambda _: ""
    """Returns a remark for the note about the parts of the value that are not used."""


class FormerValue(NamedTuple):
    """A value from a former variable."""

    setting: str
    value: object
    variable: str


@dataclass(frozen=True, slots=True)
class FormerEnvironment:
    """The settings from the former variables of an environment."""

    values: tuple[FormerValue, ...]
    tables: Mapping[str, Mapping[str, FormerValue]]
    """Setting → tables by name. They are added to the tables that are set elsewhere."""
    notes: tuple[str, ...]
    """A line for each known variable that is set: the setting to use instead, or why it is ignored."""


def _days(hours: str) -> object:
    return max(1, math.ceil(float(hours) / 24))


def _level(level: str) -> object:
    return "error" if level.strip().lower() == "critical" else level.strip()


def _models(names: str) -> dict[str, bool]:
    """The listed models, and whether the catalog has each."""
    known: dict[str, bool] = {}
    for name in _names(names):
        try:
            ModelCatalog.load().resolve(name)
            known[name] = True
        except InvalidArgumentsError:
            known[name] = False
    return known


def _shipped_model(name: str) -> object:
    """Looks a model up in the catalog only: former servers had no configured providers."""
    if name.lower() == AUTO:
        return AUTO
    try:
        return ModelCatalog.load().resolve(name).id
    except InvalidArgumentsError as error:
        raise _UnknownModelError(error.message.removesuffix(".")) from None


class _UnknownModelError(ValueError):
    """The message is for the note."""


def _known_models(names: str) -> object:
    known = [name for name, is_known in _models(names).items() if is_known]
    return known or _names(names)  # if no model is known, the error of the setting names them


def _unknown_models(names: str) -> str:
    unknown = [name for name, is_known in _models(names).items() if not is_known]
    return f", without {', '.join(unknown)}, which the catalog does not have" if unknown else ""


VARIABLES: Final = (
    FormerVariable("EXAI_WS_HOST", "host"),
    FormerVariable("EXAI_WS_PORT", "port"),
    FormerVariable("EXAI_WS_TOKEN", "token"),
    FormerVariable("EXAI_WS_HELLO_TIMEOUT", "hello_timeout_s"),
    FormerVariable("EXAI_WS_PING_INTERVAL", "ping_interval_s"),
    FormerVariable("EXAI_WS_PING_TIMEOUT", "ping_timeout_s"),
    FormerVariable("EXAI_WS_PROGRESS_INTERVAL_SECS", "progress_interval_s"),
    FormerVariable("EXAI_WS_MAX_BYTES", "max_frame_bytes"),
    FormerVariable("EXAI_WS_RESULT_TTL", "result_ttl_s"),
    FormerVariable("EXAI_WS_GLOBAL_MAX_INFLIGHT", "max_running"),
    FormerVariable("EXAI_WS_SESSION_MAX_INFLIGHT", "max_running_per_session"),
    FormerVariable("EXAI_WS_KIMI_MAX_INFLIGHT", "kimi_concurrency"),
    FormerVariable("EXAI_WS_GLM_MAX_INFLIGHT", "glm_concurrency"),
    FormerVariable("SIMPLE_TOOL_TIMEOUT_SECS", "default_timeout_s"),
    FormerVariable("KIMI_API_URL", "kimi_base_url"),
    FormerVariable("MOONSHOT_API_URL", "kimi_base_url"),
    FormerVariable("MOONSHOT_BASE_URL", "kimi_base_url"),
    FormerVariable("GLM_API_URL", "glm_base_url"),
    FormerVariable("ZHIPUAI_API_URL", "glm_base_url"),
    FormerVariable("ZHIPUAI_BASE_URL", "glm_base_url"),
    FormerVariable("ZAI_BASE_URL", "glm_base_url"),
    FormerVariable("ZAI_API_KEY", "glm_api_key", also={"glm_base_url": ZAI_BASE_URL}),
    FormerVariable("DEFAULT_MODEL", "default_model", _shipped_model),
    FormerVariable("KIMI_ALLOWED_MODELS", "kimi_allowed_models", _known_models, remark=_unknown_models),
    FormerVariable("MOONSHOT_ALLOWED_MODELS", "kimi_allowed_models", _known_models, remark=_unknown_models),
    FormerVariable("GLM_ALLOWED_MODELS", "glm_allowed_models", _known_models, remark=_unknown_models),
    FormerVariable("ZHIPUAI_ALLOWED_MODELS", "glm_allowed_models", _known_models, remark=_unknown_models),
    FormerVariable("LOCALE", "locale"),
    FormerVariable("CONVERSATION_TIMEOUT_HOURS", "conversations_keep_days", _days),
    FormerVariable("LOG_LEVEL", "log_level", _level),
)
"""Variables of the same setting are in order of precedence. The variables about tools are read together
(``_toolset``).
"""

TOOL_VARIABLES: Final = ("TOOL_PROFILE", "ENABLED_TOOLS", "DISABLED_TOOLS")

_OTHER_VENDORS: Final = "[providers.NAME] in toold.toml adds other vendors"
_PER_CALL: Final = "callers say it per call"
_TIMEOUTS: Final = "each tool has its own timeout, and callers may send timeout_ms"
_BUILT_IN: Final = "toold needs no setting for it"

UNUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            *("GEMINI_API_KEY", "GEMINI_BASE_URL", "OPENAI_API_KEY", "XAI_API_KEY", "OPENROUTER_API_KEY"),
            *("AZURE_OPENAI_*", "DIAL_API_*", "CUSTOM_API_*", "CUSTOM_MODEL_NAME", "MINIMAX_*"),
            *("OPENAI_ALLOWED_MODELS", "GOOGLE_ALLOWED_MODELS", "XAI_ALLOWED_MODELS", "DIAL_ALLOWED_MODELS"),
            "OPENROUTER_ALLOWED_MODELS",
        ),
        _OTHER_VENDORS,
    ),
    **dict.fromkeys(
        (
            *("DEFAULT_THINKING_MODE_THINKDEEP", "EXPERT_ANALYSIS_*", "DEFAULT_USE_ASSISTANT_MODEL"),
            *("GLM_ENABLE_WEB_BROWSING", "KIMI_ENABLE_INTERNET_*", "EX_WEBSEARCH_DEFAULT_ON", "GLM_WEBSEARCH_*"),
            *("CLIENT_DEFAULTS_USE_WEBSEARCH", "DEFAULT_MAX_OUTPUT_TOKENS", "KIMI_MAX_OUTPUT_TOKENS"),
            "GLM_MAX_OUTPUT_TOKENS",
        ),
        _PER_CALL,
    ),
    **dict.fromkeys(
        (
            "WORKFLOW_TOOL_TIMEOUT_SECS",
            "KIMI_*TIMEOUT*",
            "GLM_*TIMEOUT*",
            "CUSTOM_*_TIMEOUT",
            "EX_HTTP_TIMEOUT_SECONDS",
        ),
        _TIMEOUTS,
    ),
    **dict.fromkeys(
        (
            *("KIMI_DEFAULT_MODEL", "GLM_DEFAULT_MODEL", "KIMI_*_MODEL", "GLM_*_MODEL", "*_PREFERRED_MODELS"),
            *("FAST_MODEL_DEFAULT", "LONG_MODEL_DEFAULT", "ROUTER_ENABLED", "HIDDEN_MODEL_ROUTER_ENABLED"),
        ),
        "write default_model, or allowed models per vendor; `auto` chooses the cheapest suitable one",
    ),
    **dict.fromkeys(
        ("EX_ALLOW_EXTERNAL_PATHS", "EX_ALLOWED_EXTERNAL_PREFIXES", "EX_ALLOW_RELATIVE_PATHS"),
        "write the readable directories in workspace",
    ),
    "MAX_CONVERSATION_TURNS": "conversation_tokens limits a conversation",
    "CONVERSATION_STORAGE_BACKEND": "conversations are in the state directory",
    "ALLOWED_PROVIDERS": "a vendor is used if its key is set",
    **dict.fromkeys(
        ("HEALTH_CHECK_PORT", "MONITORING_PORT", "METRICS_PORT"), "http_port serves /healthz, /readyz and /metrics"
    ),
    **dict.fromkeys(
        ("EXAI_WS_*", "SHIM_LISTEN_PORT", "EX_SESSION_SCOPE_*", "KIMI_STREAM_*", "GLM_STREAM_*"), _BUILT_IN
    ),
    **dict.fromkeys(("KIMI_FILES_*", "KIMI_CACHE_*", "ROUTER_*", "PAL_MCP_FORCE_ENV_OVERRIDE"), _BUILT_IN),
}
"""Variables without an equivalent, as globs, and the reasons. The first match counts."""


def read_former(env: Mapping[str, str], elsewhere: Collection[str]) -> FormerEnvironment:
    """The settings from the former variables, except settings that are set ``elsewhere``."""
    agent = former_agent(env, elsewhere)
    values = {setting: FormerValue(setting, *value) for setting, value in agent.values.items()}
    notes: list[str] = []
    for row in VARIABLES:
        text = env.get(row.name, "").strip()
        if not text or row.name in agent.claimed:
            continue
        if row.setting in elsewhere or row.setting in values:
            notes.append(f"{row.name} is ignored: {row.setting} is set already")
            continue
        try:
            value = row.convert(text)
            _validate(row.setting, value)
        except ValueError as error:
            notes.append(f"{row.name} is ignored: {row.setting} {_problem(error)}")
            continue
        for setting, further in {row.setting: value, **(row.also or {})}.items():
            if setting not in elsewhere:
                values.setdefault(setting, FormerValue(setting, further, row.name))
        new_names = f"{row.setting} or {ENV_PREFIX}{row.setting.upper()}"
        notes.append(f"{row.name} is read as {row.setting}{row.remark(text)}; write {new_names}")
    for value in (*_toolset(env, elsewhere, notes), *_prompts(env, elsewhere, notes)):
        values[value.setting] = value
    tables = {
        setting: {name: FormerValue(setting, *value) for name, value in named.items()}
        for setting, named in agent.tables.items()
    }
    return FormerEnvironment(tuple(values.values()), tables, (*notes, *agent.notes))


def unused_variables(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that are set and have no effect, with the reasons."""
    known = {row.name for row in VARIABLES} | set(TOOL_VARIABLES) | set(PROMPT_VARIABLES)
    aliases = _names_of_settings()
    unused: dict[str, str] = {}
    for name in sorted(env):
        if env[name] and name not in known and name not in aliases:
            reason = next((reason for glob, reason in UNUSED.items() if fnmatchcase(name, glob)), None)
            if reason is not None:
                unused[name] = reason
    return unused


def _names_of_settings() -> set[str]:
    """The former variables that are still names of settings, such as ``KIMI_BASE_URL``."""
    return {
        str(choice)
        for field in Settings.model_fields.values()
        for choice in getattr(field.validation_alias, "choices", ())
    }


def _toolset(env: Mapping[str, str], elsewhere: Collection[str], notes: list[str]) -> Iterator[FormerValue]:
    """The default toolset that the variables about tools describe."""
    profile, enabled, disabled = (env.get(name, "").strip() for name in TOOL_VARIABLES)
    present = [name for name in TOOL_VARIABLES if env.get(name, "").strip()]
    if not present:
        return
    if _TOOLS_SETTING in elsewhere or "toolsets" in elsewhere:
        notes.extend(f"{name} is ignored: {_TOOLS_SETTING} or toolsets is set already" for name in present)
        return
    base = shipped_toolsets().get(profile.lower() or DEFAULT_TOOLSET)
    if base is None:
        notes.append(f"TOOL_PROFILE is ignored: must be one of {', '.join(shipped_toolsets())}")
        base = shipped_toolsets()[DEFAULT_TOOLSET]
        present.remove("TOOL_PROFILE")
    if not (enabled or disabled):
        if present:
            notes.append(f"TOOL_PROFILE is read as {_TOOLS_SETTING}; write {_TOOLS_SETTING} = {base.name!r}")
            yield FormerValue(_TOOLS_SETTING, base.name, "TOOL_PROFILE")
        return
    table: dict[str, Any] = {"include": _names(enabled) or list(base.include), "exclude": _names(disabled)}
    variable = present[-1]
    try:
        _validate("toolsets", {FORMER_TOOLSET: table})
    except ValueError as error:
        notes.extend(f"{name} is ignored: {_problem(error)}" for name in present)
        return
    notes.extend(
        f"{name} is read as {_TOOLS_SETTING}; write [toolsets.NAME] with include and exclude, and {_TOOLS_SETTING}"
        for name in present
    )
    yield FormerValue("toolsets", {FORMER_TOOLSET: table}, variable)
    yield FormerValue(_TOOLS_SETTING, FORMER_TOOLSET, variable)


def _prompts(env: Mapping[str, str], elsewhere: Collection[str], notes: list[str]) -> Iterator[FormerValue]:
    """The prompt servers and files that the variables describe."""
    present = [name for name in PROMPT_VARIABLES if env.get(name, "").strip()]
    if "prompts" in elsewhere:
        notes.extend(f"{name} is ignored: prompts is set already" for name in present)
    elif present:
        table, prompt_notes = former_prompts(env)
        notes.extend(prompt_notes)
        if table:
            yield FormerValue("prompts", table, present[0])


def _names(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]


def _validate(setting: str, value: object) -> None:
    """Raises ValueError if the value does not fit the setting."""
    field = Settings.model_fields[setting]
    TypeAdapter(field.rebuild_annotation()).validate_python(value)


def _problem(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        return setting_message(error.errors(include_url=False)[0])
    return str(error) if isinstance(error, _UnknownModelError) else "has an invalid value"
