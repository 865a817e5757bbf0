"""The configuration is read again while the daemon runs."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.daemon.app_requests import call
from toold.daemon.config.setting_sources import SettingsError
from toold.protocol.tool_call import LOCAL
from toold.tools import PromptError, PromptQuery
from websockets.asyncio.client import connect


async def test_reloaded_settings_take_effect(run_with: Any, configure: Any) -> None:
    """Limits, permits and the default model change in every component, and the status agrees."""
    daemon = await run_with()
    configure('max_running = 2\nglm_concurrency = 1\nmax_waiting = 5\nmax_timeout_s = 60\ndefault_model = "glm-4.6"\n')
    changes = await daemon.reload()
    expected = {"max_running", "glm_concurrency", "max_waiting", "max_timeout_s", "default_model"}
    assert (set(changes.reloaded), changes.needs_restart) == (expected, ())
    limits = (await daemon.view.status(LOCAL, recent=0, days=7))["limits"]
    assert (limits["running"]["limit"], limits["providers"]["glm"]["limit"], limits["max_waiting"]) == (2, 1, 5)
    assert (daemon.router.limits.max_timeout_s, daemon.view.default_model()) == (60, "glm-4.6")
    assert b'toold_permits_limit{limit="running"} 2.0' in daemon.metrics.render()


async def test_an_invalid_configuration_changes_nothing(run_with: Any, configure: Any) -> None:
    """Valid settings in it are not applied either; the log has the error."""
    daemon = await run_with()
    before = daemon.settings
    configure("max_running = 2\nmax_waiting = 0\n")
    with capture_logs() as lines, pytest.raises(SettingsError, match=r"max_waiting \(toold.toml\): must be 1 or more"):
        await daemon.reload()
    assert daemon.settings is before
    assert daemon.router.permits.limit == 24
    assert [line["reason"] for line in lines if line["log_level"] == "error"] == [
        "max_waiting (toold.toml): must be 1 or more"
    ]


async def test_toolsets_follow_the_configuration(run_with: Any, configure: Any) -> None:
    """A session has the current definition of its toolset; a new default applies to later sessions."""
    configure('[toolsets.mine]\ninclude = ["echo", "version"]\n')
    daemon = await run_with(TOOLD_AUTH="false")
    async with connect(daemon.address().url) as socket:
        await socket.send(json.dumps({"op": "hello", "toolset": "mine", "features": ["tools_changed"]}))
        assert json.loads(await socket.recv())["toolset"] == "mine"
        configure('default_toolset = "mine"\n[toolsets.mine]\ninclude = ["echo", "staus"]\n')
        assert set((await daemon.reload()).reloaded) == {"toolsets", "default_toolset"}
        assert json.loads(await socket.recv())["op"] == "tools_changed"
        await socket.send(json.dumps({"op": "list_tools"}))
        assert [tool["name"] for tool in json.loads(await socket.recv())["tools"]] == ["00_INIT", "echo"]
    assert daemon.router.catalog.default == "mine"
    assert (
        "toolset 'mine': include names 'staus', but there is no such tool; did you mean 'status'?"
        in (daemon.view.health(LOCAL)["problems"])
    )


async def test_an_invalid_toolset_is_refused_and_the_old_stays(run_with: Any, configure: Any) -> None:
    """The message names the toolset and the error."""
    configure('[toolsets.mine]\ninclude = ["echo"]\n')
    daemon = await run_with()
    before = daemon.router.catalog
    configure('[toolsets.mine]\ninclude = ["echo and more"]\n')
    with pytest.raises(SettingsError, match=r"toolsets \(toold.toml\): \[toolsets.mine\] include has 'echo and more'"):
        await daemon.reload()
    assert daemon.router.catalog is before


async def test_a_conversation_is_bounded_by_the_reloaded_number(run_with: Any, configure: Any) -> None:
    """Earlier turns are dropped once a conversation may hold only its last answer."""
    daemon = await run_with()
    begun = await call(daemon, "chat", prompt="word " * 500, model="glm-4.6")
    known = {"model": "glm-4.6", "continuation_id": begun["structured"]["continuation_id"]}
    configure("conversation_tokens = 150\n")
    assert (await daemon.reload()).reloaded == ("conversation_tokens",)
    assert "2 earlier messages" in (await call(daemon, "chat", prompt="And?", **known))["outputs"][0]["text"]
    bounded = (await call(daemon, "chat", prompt="And now?", **known))["outputs"][0]["text"]
    assert '3 earlier messages, the first begins "Simulated answer' in bounded


async def test_a_reloaded_workspace_is_what_calls_may_read(run_with: Any, configure: Any, tmp_path: Path) -> None:
    """The new directory and no longer the old one; its toold.toml and the state directory stay closed."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file.txt").write_text(f"the {name} one")
    (tmp_path / "new" / "toold.toml").write_text("# a key")
    configure('workspace = ["old"]\n')
    daemon = await run_with()
    configure('workspace = ["new"]\n')
    assert (await daemon.reload()).reloaded == ("workspace",)
    read = {}
    for path in ("file.txt", str(tmp_path / "old" / "file.txt"), "toold.toml"):
        error = (await call(daemon, "chat", prompt="Read it.", files=[path]))["error"]
        read[path] = error and error["code"]
    assert list(read.values()) == [None, "PERMISSION_DENIED", "PERMISSION_DENIED"]


async def test_reloaded_audit_content_counts_for_the_next_row(run_with: Any, configure: Any) -> None:
    """A call's arguments are stored by the setting at its end."""
    daemon = await run_with()
    await call(daemon, "echo", text="first")
    await daemon.store.flush()
    configure('audit_content = "full"\n')
    await daemon.reload()
    await call(daemon, "echo", text="second")
    await daemon.store.flush()
    arguments = [row.arguments for row in await daemon.store.audit.recent(2)]
    assert arguments[0] == {"text": "second"}
    assert "first" not in str(arguments[1])


async def test_concurrent_reloads_are_serialized(run_with: Any, configure: Any) -> None:
    """The second finds nothing new."""
    daemon = await run_with()
    configure("max_running = 2\n")
    changes = await asyncio.gather(daemon.reload(), daemon.reload())
    assert sorted(change.reloaded for change in changes) == [(), ("max_running",)]


async def test_prompts_follow_the_configuration(run_with: Any, configure: Any, tmp_path: Path) -> None:
    """The folder that a reload names is searched for the next prompt."""
    (tmp_path / "writer.txt").write_text("Write.")
    daemon = await run_with()
    with pytest.raises(PromptError):
        await daemon.prompts.resolve(PromptQuery("writer"))
    configure(f'[prompts]\nfolder = "{tmp_path}"\n')
    assert (await daemon.reload()).reloaded == ("prompts",)
    assert (await daemon.prompts.resolve(PromptQuery("writer"))).text == "Write."


async def test_a_provider_changes_without_a_restart(run_with: Any, configure: Any) -> None:
    """Its limit, models and budget, and what is stated of them; its address waits for a restart."""
    table = '[providers.acme]\nbase_url = "http://127.0.0.1:1/v1"\n'
    configure(table)
    daemon = await run_with()
    configure(
        'default_model = "large"\n[models."acme/large"]\ncontext_window = 8_000\n[providers.acme]\n'
        'base_url = "http://127.0.0.1:2/v1"\nmax_in_flight = 2\nmodels = ["large"]\ndaily_budget = "2 USD"\n'
    )
    changes = await daemon.reload()
    assert changes.needs_restart == ("providers.acme.base_url",)
    assert daemon.limiters["acme"].permits.limit == 2
    assert daemon.view.default_model() == "acme/large"
    assert [model.context_window for model in daemon.view.catalog.open_providers["acme"].models] == [8_000]
    (budget,) = daemon.provider_budgets.of("acme")
    assert budget.amounts == {"USD": 2.0}
