"""Settings that change at once or at a restart, and the difference between two sets."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as on_a_busy_machine
from hypothesis import strategies as st
from toold.daemon.config.reloadable_settings import (
    NEEDS_RESTART,
    PARTLY_RELOADABLE,
    RELOADABLE,
    RELOADABLE_OF_PROVIDERS,
    compare,
)
from toold.daemon.config.settings import Settings

CHANGED: dict[str, str] = {
    "max_running": "7",
    "max_waiting": "8",
    "log_level": "debug",
    "default_model": "glm-4.6",
    "max_timeout_s": "99",
    "port": "7000",
    "token": "another-token-of-20-chars",
    "kimi_api_key": "sk-another",
    "hello_timeout_s": "3",
}


def test_each_setting_is_in_one_class() -> None:
    """Each setting is in exactly one of the two sets, so a new setting must be added to one."""
    assert set(Settings.model_fields) == RELOADABLE | NEEDS_RESTART | PARTLY_RELOADABLE
    assert not RELOADABLE & NEEDS_RESTART


def test_the_documents_name_what_changes_at_once() -> None:
    """docs/configuration.md lists exactly the settings that a reload changes."""
    text = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text(encoding="utf-8")
    section = text.partition("\n## Reload\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", section)) & set(Settings.model_fields)
    assert named - {"tls_cert", "tls_key"} == RELOADABLE


@pytest.mark.parametrize("together", [("auth", "host"), ("port", "http_port"), ("tls_cert", "tls_key"),
                                      ("default_timeout_s", "max_timeout_s")])  # fmt: skip
def test_settings_validated_together_are_in_one_class(together: tuple[str, str]) -> None:
    """Otherwise half of a pair would take effect without validation."""
    assert set(together) <= RELOADABLE or set(together) <= NEEDS_RESTART


def test_changeable_settings_change_and_the_rest_waits(settings_with: Any) -> None:
    """The settings in effect have the one as it was read, and the other as it was at the start."""
    start = settings_with(TOOLD_SIMULATE="true")
    changes = compare(start, settings_with(TOOLD_SIMULATE="true", TOOLD_MAX_RUNNING="7", TOOLD_HOST="::1"))
    assert (changes.reloaded, changes.needs_restart) == (("max_running",), ("host",))
    assert (changes.settings.max_running, changes.settings.host) == (7, start.host)


def test_waiting_settings_are_reported_every_time(settings_with: Any) -> None:
    """A second reload finds nothing new to change, and still names what needs the restart."""
    read = settings_with(TOOLD_MAX_RUNNING="7", TOOLD_HOST="::1")
    repeat = compare(compare(settings_with(), read).settings, read)
    assert (repeat.reloaded, repeat.needs_restart) == ((), ("host",))


def test_loading_again_uses_the_same_sources(settings_with: Any, tmp_path: Any) -> None:
    """The current file is read under the same environment; the loaded settings can be loaded again in the same way."""
    file = tmp_path / "toold.toml"
    start = settings_with(TOOLD_MAX_WAITING="5")
    file.write_text("max_running = 7\nmax_waiting = 6\n")
    changes = compare(start, start.load_again())
    assert (changes.settings.max_running, changes.settings.max_waiting, changes.settings.config) == (7, 5, file)
    file.write_text("max_running = 8\n")
    assert compare(changes.settings, changes.settings.load_again()).settings.max_running == 8


@on_a_busy_machine(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.sets(st.sampled_from(sorted(CHANGED))))
def test_each_change_is_reported_once(settings_with: Any, names: set[str]) -> None:
    """Every changed setting is reported, and only the reloadable ones take effect."""
    start = settings_with()
    read = settings_with(**{f"TOOLD_{name.upper()}": CHANGED[name] for name in names})
    changes = compare(start, read)
    assert set(changes.reloaded) == names & RELOADABLE
    assert set(changes.needs_restart) == names & NEEDS_RESTART
    for name in Settings.model_fields:
        source = read if name in RELOADABLE else start
        assert getattr(changes.settings, name) == getattr(source, name)


def test_some_settings_of_a_provider_change_at_once(settings_with: Any, tmp_path: Any) -> None:
    """Its limits and models do; its address, and providers that are new or removed, wait for a restart. So does a
    default model of a new provider.
    """
    file = tmp_path / "toold.toml"
    file.write_text("[providers.a]\ntype = 'ollama'\n[providers.b]\ntype = 'ollama'\n")
    start = settings_with()
    file.write_text(
        "default_model = 'c/x'\n[providers.c]\ntype = 'ollama'\n"
        "[providers.a]\ntype = 'vllm'\nmax_in_flight = 9\nmodels = ['x*']\ntimeout_s = 5\ndaily_budget = '1 USD'\n"
        "fallback = ['glm-5']\n"
    )
    changes = compare(start, start.load_again())
    assert set(changes.reloaded) == {f"providers.a.{name}" for name in RELOADABLE_OF_PROVIDERS - {"default_model"}}
    assert set(changes.needs_restart) == {"default_model", "providers.a.type", "providers.b", "providers.c"}
    tables = changes.settings.providers
    assert (list(tables), tables["a"].type, tables["a"].max_in_flight) == (["a", "b"], "ollama", 9)
    assert changes.settings.default_model is None
