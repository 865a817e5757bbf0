"""``fallback`` of providers, tools and agents: which lists are valid, which one counts, and what a reload applies."""

from collections.abc import Callable
from pathlib import Path

import pytest
from toold.daemon.config.default_model import fallback_lists
from toold.daemon.config.reloadable_settings import compare
from toold.daemon.config.setting_sources import SettingsError
from toold.daemon.config.settings import Settings
from toold.daemon.config.settings_mapping import hosted_agents, tool_binder
from toold.tools import load_registry

MakeSettings = Callable[..., Settings]

ACME = "[providers.acme]\nbase_url = 'https://llm.example.org/v1'\nmodels = ['large*']\n"


def test_a_tools_list_precedes_its_providers(settings_with: MakeSettings, tmp_path: Path) -> None:
    """Also an empty one. Kimi's, GLM's and other providers' lists are set alike, in the file or by a variable."""
    (tmp_path / "toold.toml").write_text(
        f"kimi_fallback = ['acme/large', 'glm/glm-4.6']\n{ACME}\n"
        "[tools.chat]\nfallback = ['kimi-k2.6']\n[tools.challenge]\nfallback = []\n[tools.complete]\n"
    )
    settings = settings_with(TOOLD_PROVIDERS__ACME__FALLBACK="glm-4.6, kimi-k2.6", TOOLD_GLM_FALLBACK="kimi-k2.6")
    lists = fallback_lists(settings)
    assert lists.of("chat", "kimi") == ("kimi-k2.6",)
    assert lists.of("challenge", "kimi") == ()
    assert lists.of("complete", "kimi") == ("acme/large", "glm/glm-4.6")
    assert (lists.of("x", "acme"), lists.of("x", "glm")) == (("glm-4.6", "kimi-k2.6"), ("kimi-k2.6",))


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        (ACME + "fallback = ['acmee/large']", "fallback has an invalid name: Unknown provider 'acmee'; did"),
        (ACME + "fallback = ['glm-4.66']", "Unknown model 'glm-4.66'; did you mean"),
        (ACME + "fallback = ['acme/large']", "names acme/large, a model of acme itself"),
        (ACME + "fallback = ['auto']", "[providers.acme] fallback must name models; auto may"),
        ("kimi_fallback = ['kimi-k2.6']", "kimi_fallback (toold.toml): names kimi-k2.6, a model of kimi itself"),
        ("kimi_fallback = ['glm-4.6', 'glm/glm-4.6']", "names glm-4.6 twice"),
        ("glm_allowed_models = ['glm-5']\nkimi_fallback = ['glm-4.6']", "the operator does not allow glm-4.6"),
        (ACME + "[tools.chat]\nfallback = ['acme/small']", "[tools.chat] fallback has an invalid name: "),
        ("[tools.chat]\nfallback = 3", "[tools.chat] fallback must be a list"),
        (f"[tools.chat]\nfallback = {['glm-4.6'] * 9}", "[tools.chat] fallback must have 8 entries or fewer"),
        ("[tools.chat]\nfalback = []", "[tools.chat] falback is not a setting; did you mean 'fallback'?"),
        ("tools = 3", "must be set in toold.toml, as tables [tools.NAME]"),
        ("[tools.chta]\nfallback = []", "[tools.chta]: chta is not a tool that asks a model; did you mean 'chat'?"),
        ("[tools.echo]\nfallback = []", "[tools.echo]: echo asks no model"),
        ("[tools.embed]\nfallback = []", "[tools.embed]: embed asks no model, or only certain ones"),
        ("[tools.kimi_chat_with_files]\nfallback = []", "asks no model, or only certain ones"),
        ("[agents.a]\ndescription = 'd'\nprompt = 'p'\nfallback = ['glm-4.66']", "agents: a: fallback has an"),
    ],
)  # fmt: skip
def test_invalid_lists_are_refused(settings_with: MakeSettings, tmp_path: Path, toml: str, says: str) -> None:
    """The message names the list, and what is wrong."""
    (tmp_path / "toold.toml").write_text(toml)
    with pytest.raises(SettingsError) as error:
        _checked(settings_with())
    assert says in str(error.value)


def _checked(settings: Settings) -> None:
    tool_binder(settings, load_registry())
    hosted_agents(settings)


def test_a_list_with_a_new_provider_waits_as_that_does(settings_with: MakeSettings, tmp_path: Path) -> None:
    """Other changes of lists take effect with a reload."""
    before = settings_with()
    (tmp_path / "toold.toml").write_text(
        f"kimi_fallback = ['acme/large']\nglm_fallback = ['kimi-k2.6']\n{ACME}[tools.chat]\nfallback = ['acme/large']\n"
    )
    changes = compare(before, settings_with())
    assert changes.reloaded == ("glm_fallback",)
    assert set(changes.needs_restart) == {"kimi_fallback", "tools", "providers.acme"}
