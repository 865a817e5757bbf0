"""The sources of settings, and the errors of invalid ones."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as on_a_busy_machine
from hypothesis import strategies as st
from toold.daemon.config.setting_sources import SettingsError, load_settings
from toold.daemon.config.settings import Settings

from .loaded_settings import load, refusal

SECRET = "sk-verysecretverysecretverysecret"


def outcome(*, cwd: Path, env: Mapping[str, str]) -> str:
    """The settings as they are printed, or the refusal."""
    try:
        return repr(load_settings({}, env=env, cwd=cwd))
    except SettingsError as error:
        return str(error)


# --- where they come from --------------------------------------------------------------------------------------------


def test_each_source_overrides_the_previous(tmp_path: Path) -> None:
    """A flag beats the environment, which beats toold.toml, which beats the default."""
    (tmp_path / "toold.toml").write_text("port = 1\nhttp_port = 2\nmax_running = 3\n")
    settings = load({"port": 11}, cwd=tmp_path, TOOLD_PORT="21", TOOLD_HTTP_PORT="22")
    assert (settings.port, settings.http_port, settings.max_running, settings.max_waiting) == (11, 22, 3, 1000)


def test_missing_flags_are_ignored(tmp_path: Path) -> None:
    """A flag whose value is None leaves the setting to the other sources."""
    assert load({"port": None}, cwd=tmp_path, TOOLD_PORT="5").port == 5


def test_empty_variables_count_as_not_set(tmp_path: Path) -> None:
    """An empty variable is as good as none, so that `docker run -e KIMI_API_KEY=` means no key."""
    settings = load(cwd=tmp_path, TOOLD_PORT="", KIMI_API_KEY="", MOONSHOT_API_KEY=SECRET)
    assert settings.port == 8079
    assert settings.kimi_api_key is not None
    assert settings.kimi_api_key.get_secret_value() == SECRET


@pytest.mark.parametrize(
    ("variable", "setting"),
    [
        ("KIMI_API_KEY", "kimi_api_key"),
        ("MOONSHOT_API_KEY", "kimi_api_key"),
        ("TOOLD_KIMI_API_KEY", "kimi_api_key"),
        ("GLM_API_KEY", "glm_api_key"),
        ("ZHIPUAI_API_KEY", "glm_api_key"),
        ("SUPABASE_SERVICE_ROLE_KEY", "supabase_service_role_key"),
    ],
)
def test_secrets_are_read_under_their_usual_names(tmp_path: Path, variable: str, setting: str) -> None:
    """Each vendor's usual variable sets its key, without the line end that was copied along."""
    settings = load(cwd=tmp_path, **{variable: f"{SECRET}\n"})
    assert getattr(settings, setting).get_secret_value() == SECRET


@pytest.mark.parametrize("variable", ["KIMI_BASE_URL", "GLM_BASE_URL", "SUPABASE_URL"])
def test_addresses_are_read_under_their_usual_names(tmp_path: Path, variable: str) -> None:
    """The vendors' addresses have their usual variables too."""
    settings = load(cwd=tmp_path, **{variable: "http://127.0.0.1:9/v1"})
    assert getattr(settings, variable.lower()) == "http://127.0.0.1:9/v1"


def test_the_config_file_may_be_named(tmp_path: Path) -> None:
    """TOOLD_CONFIG or the flag names another file; its relative paths start at its directory."""
    (tmp_path / "etc" / "work").mkdir(parents=True)
    (tmp_path / "etc" / "my.toml").write_text('workspace = ["work"]\nstate_dir = "state"\n')
    for settings in (load(cwd=tmp_path, TOOLD_CONFIG="etc/my.toml"), load({"config": "etc/my.toml"}, cwd=tmp_path)):
        assert settings.workspace == (tmp_path / "etc" / "work",)
        assert settings.state_dir == tmp_path / "etc" / "state"


def test_the_state_directory_has_the_file_of_all_daemons_that_start_elsewhere(tmp_path: Path) -> None:
    """A file where the daemon starts comes first, a named file excludes both, and the place of a new one is shared."""
    state, start = tmp_path / "state", tmp_path / "start"
    for directory in (state, start):
        directory.mkdir()
    named = {"TOOLD_STATE_DIR": str(state)}
    assert load(cwd=start, **named).config_place == state / "toold.toml"
    (state / "toold.toml").write_text("max_running = 3\n")
    settings = load(cwd=start, **named)
    assert (settings.max_running, settings.config) == (3, state / "toold.toml")
    assert load({"state_dir": "../state"}, cwd=start).max_running == 3
    (start / "toold.toml").write_text("max_running = 4\n")
    assert load(cwd=start, **named).max_running == 4
    assert settings.load_again().max_running == 4
    (tmp_path / "other.toml").touch()
    other = load(cwd=start, TOOLD_CONFIG="../other.toml", **named)
    assert other.max_running not in {3, 4}
    assert other.config_places == (start / "../other.toml",)


def test_the_directory_of_workflow_tools_must_be_there(tmp_path: Path) -> None:
    """It starts where the source does that names it; a directory that is not there would be a misspelling unnoticed."""
    (tmp_path / "toold.toml").write_text('workflow_dir = "flows"\n')
    assert "workflow_dir (toold.toml): must be existing directories" in refusal(cwd=tmp_path)
    (tmp_path / "flows").mkdir()
    assert load(cwd=tmp_path).workflow_dir == tmp_path / "flows"


def test_lists_are_split_as_their_variables_are_written(tmp_path: Path) -> None:
    """TOOLD_WORKSPACE is split like PATH, TOOLD_ALLOWED_ORIGINS at commas; relative directories start at the cwd."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    origins = "https://a.example, http://localhost:3000"
    both = os.pathsep.join(["a", str(tmp_path / "b")])
    settings = load(cwd=tmp_path, TOOLD_WORKSPACE=both, TOOLD_ALLOWED_ORIGINS=origins)
    assert settings.workspace == (tmp_path / "a", tmp_path / "b")
    assert settings.allowed_origins == ("https://a.example", "http://localhost:3000")


# --- which are refused, and with which words -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"TOOLD_PORT": "99999"}, "port (TOOLD_PORT): must be 65535 or less"),
        ({"TOOLD_PORT": "-1"}, "port (TOOLD_PORT): must be 0 or more"),
        ({"TOOLD_HTTP_PORT": "x"}, "http_port (TOOLD_HTTP_PORT): must be a whole number"),
        ({"TOOLD_AUTH": "perhaps"}, "auth (TOOLD_AUTH): must be true or false"),
        (
            {"TOOLD_LOG_FORMAT": "jsn"},
            "(TOOLD_LOG_FORMAT): must be one of auto, console, json; did you mean 'json'?",
        ),
        ({"TOOLD_MAX_RUNNING": "0"}, "max_running (TOOLD_MAX_RUNNING): must be 1 or more"),
        ({"TOOLD_GRACE_PERIOD_S": "0"}, "grace_period_s (TOOLD_GRACE_PERIOD_S): must be more than 0"),
        ({"TOOLD_GRACE_PERIOD_S": "x"}, "grace_period_s (TOOLD_GRACE_PERIOD_S): must be a number"),
        ({"TOOLD_DEFAULT_MODEL": " "}, "default_model (TOOLD_DEFAULT_MODEL): must not be empty"),
        (
            {"TOOLD_DEFAULT_MODEL": "kimi-k9"},
            "default_model (TOOLD_DEFAULT_MODEL): Unknown model 'kimi-k9'; did you mean 'kimi-k",
        ),
        ({"TOOLD_GRACE_PERIOD_S": "inf"}, "grace_period_s (TOOLD_GRACE_PERIOD_S): must be a finite number"),
        ({"TOOLD_GRACE_PERIOD_S": "nan"}, "grace_period_s (TOOLD_GRACE_PERIOD_S): must be"),
        ({"TOOLD_PROGRESS_INTERVAL_S": "9"}, "progress_interval_s (TOOLD_PROGRESS_INTERVAL_S): must be 8 or less"),
        ({"TOOLD_TOKEN": "tooshort"}, "token (TOOLD_TOKEN): must have 16 printable ASCII characters or more"),
        ({"TOOLD_TOKEN": "with a space in it, but long"}, "token (TOOLD_TOKEN): must have 16"),
        ({"MOONSHOT_API_KEY": "two words"}, "kimi_api_key (MOONSHOT_API_KEY): must be a key as the vendor displays it"),
        ({"KIMI_BASE_URL": "ftp://x"}, "kimi_base_url (KIMI_BASE_URL): must be a URL that starts with http://"),
        ({"GLM_BASE_URL": "https://"}, "glm_base_url (GLM_BASE_URL): must be a URL"),
        ({"GLM_BASE_URL": "https://h:99999/"}, "glm_base_url (GLM_BASE_URL): must be a URL"),
        (
            {"TOOLD_WORKSPACE": "/nowhere/at/all"},
            "workspace (TOOLD_WORKSPACE): must be existing directories; /nowhere/at",
        ),
        ({"TOOLD_WORKSPACE": os.pathsep}, "workspace (TOOLD_WORKSPACE): "),
        ({"TOOLD_ALLOWED_ORIGINS": "*"}, "allowed_origins (TOOLD_ALLOWED_ORIGINS): must be origins such as https://"),
        ({"TOOLD_CONFIG": "none.toml"}, "none.toml: cannot be read"),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, env: dict[str, str], words: str) -> None:
    """The line names the setting, the variable that it came from, and what is allowed."""
    assert words in refusal(cwd=tmp_path, **env)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"port": 70000}, "port (--port): must be 65535 or less"),
        ({"host": "::", "auth": False}, "auth (--no-auth): may be off only if host is loopback"),
        ({"max_runing": 3}, "max_runing (--max-runing): is not a setting; did you mean 'max_running'?"),
    ],
)
def test_a_wrong_flag_is_named(tmp_path: Path, flags: dict[str, object], words: str) -> None:
    """An invalid flag is named as that flag."""
    assert words in refusal(flags, cwd=tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prot = 1", "unknown setting 'prot'; did you mean 'port'?"),
        ("zzzzqqqq = 1", "unknown setting 'zzzzqqqq'; see docs/configuration.md"),
        ("[limits]\nmax_running = 1", "unknown setting 'limits'"),
        ("port = true", "port (toold.toml): must be a number, not true or false"),
        ("port = [1]", "port (toold.toml): must be a whole number"),
        ("host = ''", "host (toold.toml): must be an address or a name"),
        ("host = 'ws://127.0.0.1'", "host (toold.toml): must be an address or a name"),
        ("workspace = [1]", "workspace (toold.toml): "),
        ("port = ", "is not valid TOML (at "),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    """An error in toold.toml names the file, the key, and a similar key if there is one."""
    (tmp_path / "toold.toml").write_text(text)
    message = refusal(cwd=tmp_path)
    assert words in message
    assert "toold.toml" in message


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    """A toold.toml in another encoding is one line as well."""
    (tmp_path / "toold.toml").write_bytes(b"host = '\xff'")
    assert "must be UTF-8" in refusal(cwd=tmp_path)


TOML = ("true", "[1]", "{}", "1.5", "''", "-1", "'x'", "1979-05-27", "1e400", "9" * 5000, "[]", "nan")


@pytest.mark.parametrize("value", TOML)
def test_no_error_text_of_the_library_is_shown(tmp_path: Path, value: str) -> None:
    """For every type of wrong value, the message is this package's, not pydantic's."""
    file = tmp_path / "toold.toml"
    file.write_text("\n".join(f"{name} = {value}" for name in Settings.model_fields))
    reported = [outcome(cwd=tmp_path, env={})]
    accepted = [name for name in Settings.model_fields if not re.search(rf"\b{name} \(", reported[0])]
    for name in accepted:  # alone, it may be refused for its relation to other settings
        file.write_text(f"{name} = {value}")
        reported.append(outcome(cwd=tmp_path, env={}))
    texts = re.compile(r"Input should|valid (integer|number|string)|at least|Exceeds|unable to")
    assert [text for text in reported if texts.search(text)] == []


def test_an_invalid_flag_is_marked_as_such(tmp_path: Path) -> None:
    """The usage text helps after an invalid flag, not after an invalid variable."""
    for flags, env, by_flag in (({"port": -1}, {}, True), ({}, {"TOOLD_PORT": "-1"}, False)):
        with pytest.raises(SettingsError) as caught:
            load_settings(flags, env=env, cwd=tmp_path)
        assert caught.value.by_flag is by_flag


def test_all_errors_are_reported_together(tmp_path: Path) -> None:
    """Two wrong settings make one line that names both."""
    message = refusal(cwd=tmp_path, TOOLD_PORT="x", TOOLD_MAX_WAITING="y")
    assert "port (TOOLD_PORT)" in message
    assert "max_waiting (TOOLD_MAX_WAITING)" in message


# --- secrets ---------------------------------------------------------------------------------------------------------

SHOWN = {"default_model", "kimi_allowed_models", "glm_allowed_models", "kimi_fallback", "glm_fallback", "state_dir"}
"""Names of models and directories, which errors show."""

ALL_SECRETS = {
    "TOOLD_TOKEN": SECRET,
    "KIMI_API_KEY": SECRET,
    "GLM_API_KEY": SECRET,
    "SUPABASE_SERVICE_ROLE_KEY": SECRET,
}


@pytest.mark.parametrize("variable", sorted(set(Settings.model_fields) - SHOWN))
def test_no_error_shows_a_value(tmp_path: Path, variable: str) -> None:
    """If a key was put into the wrong variable, the error shows neither the key nor other secrets."""
    wrong = f"{SECRET} {SECRET}"
    env = ALL_SECRETS | {f"TOOLD_{variable.upper()}": wrong}
    reported = outcome(cwd=tmp_path, env=env)
    if variable not in {
        "workspace",
        "workflow_dir",
        "pipeline_dir",
        "agent_dir",
        "tls_cert",
        "tls_key",
        "a2a_card_key",
        "cluster_secret_file",
    }:  # directories and files are named, so that users find them
        assert SECRET not in reported


def test_a_broken_file_shows_no_secret(tmp_path: Path) -> None:
    """A syntax error next to a key is reported by its position only."""
    (tmp_path / "toold.toml").write_text(f"kimi_api_key = {SECRET}")
    assert SECRET not in refusal(cwd=tmp_path)


@on_a_busy_machine(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(sorted(Settings.model_fields)), st.text(st.characters(exclude_characters="\0"))))
def test_any_environment_loads_or_is_refused(values: dict[str, str]) -> None:
    """Any environment gives either settings or an error of one line."""
    reported = outcome(cwd=Path("/"), env={f"TOOLD_{name.upper()}": value for name, value in values.items()})
    assert len(reported.splitlines()) == 1
