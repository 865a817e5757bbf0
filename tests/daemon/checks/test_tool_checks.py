"""The doctor looks at the operator's own tools."""

from pathlib import Path

import pytest
from toold.daemon.checks.tool_checks import files, prompt_servers, source_secrets, subagent_programs
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.config.settings import Settings
from toold.sources import PINS_DIRECTORY
from toold.sources.pin_storage import PinFiles, encode_pins
from toold.sources.tool_pins import ToolPin
from toold.sources.upstream_definition import UpstreamDefinition


def settings(directory: Path, **env: str) -> Settings:
    return load_settings({}, env={"TOOLD_STATE_DIR": str(directory / "state"), **env}, cwd=directory)


def test_without_directories_there_are_no_checks(tmp_path: Path) -> None:
    """No check results."""
    assert files(settings(tmp_path)) == []


@pytest.fixture
def pipelines(tmp_path: Path) -> Path:
    """A directory for pipelines."""
    directory = tmp_path / "pipelines"
    directory.mkdir()
    return directory


def save(directory: Path, name: str, *tools: str) -> None:
    steps = "".join(f'[[steps]]\nid = "s{number}"\ntool_name = "{tool}"\n' for number, tool in enumerate(tools))
    (directory / f"{name}.toml").write_text(f'description = "Calls."\n{steps}')


def test_an_unknown_tool_of_a_pipeline_is_reported(tmp_path: Path, pipelines: Path) -> None:
    """With a similar name; tools of other files, and tools that a source may have, count as known."""
    save(pipelines, "first", "ecoh", "echo", "crm_getA", "ecoh")
    save(pipelines, "second", "first", "remote")

    def reported() -> list[str]:
        checks = files(settings(tmp_path, TOOLD_PIPELINE_DIR=str(pipelines)))
        assert {(check.name, check.status) for check in checks} == {("pipeline_dir", "warn")}
        return [check.message.removeprefix(f"the pipeline {pipelines}/") for check in checks]

    assert reported() == [
        "first.toml names 'ecoh', which is not a tool of this daemon; did you mean 'echo'?",
        "first.toml names 'crm_getA', which is not a tool of this daemon; `toold tools` lists them",
        "second.toml names 'remote', which is not a tool of this daemon; `toold tools` lists them",
    ]
    (tmp_path / "toold.toml").write_text('[sources.crm]\ntype = "openapi"\nspec = "crm.json"\n')
    assert reported() == [
        "first.toml names 'ecoh', which is not a tool of this daemon, nor a tool of a source; did you mean 'echo'?",
        (
            "second.toml names 'remote', which is not a tool of this daemon, nor a tool of a source; "
            "`toold tools` lists them"
        ),
    ]


def test_approved_tools_of_a_server_count(tmp_path: Path, pipelines: Path) -> None:
    """Before its first listing, and where its pins cannot be read, it may have any tool."""
    save(pipelines, "first", "remote")
    (tmp_path / "toold.toml").write_text('[sources.far]\ntype = "mcp"\ncommand = ["far"]\n')
    read = settings(tmp_path, TOOLD_PIPELINE_DIR=str(pipelines))
    pins = PinFiles(read.state_dir / PINS_DIRECTORY)

    def status() -> list[str]:
        return [check.status for check in files(read)]

    assert status() == ["ok"]
    pins.write("far", encode_pins({"other": ToolPin("other", UpstreamDefinition("other"))}))
    assert status() == ["warn"]
    pins.write("far", encode_pins({"away": ToolPin("remote", UpstreamDefinition("away"))}))
    assert status() == ["ok"]
    (read.state_dir / PINS_DIRECTORY / "far.json").write_text("{")
    assert status() == ["ok"]


def test_each_invalid_file_is_named(tmp_path: Path) -> None:
    """With what is wrong; a directory whose files are right says how many tools there are."""
    flows, pipelines = tmp_path / "flows", tmp_path / "pipelines"
    flows.mkdir()
    pipelines.mkdir()
    (pipelines / "bad.yaml").write_text("steps: []\n")
    (pipelines / "good.toml").write_text('description = "Echo."\n[[steps]]\nid = "a"\ntool_name = "echo"\n')
    found = files(settings(tmp_path, TOOLD_WORKFLOW_DIR=str(flows), TOOLD_PIPELINE_DIR=str(pipelines)))
    assert [(check.name, check.status) for check in found] == [("workflow_dir", "ok"), ("pipeline_dir", "warn")]
    assert "bad.yaml was skipped: " in found[1].message
    (pipelines / "bad.yaml").unlink()
    (check,) = files(settings(tmp_path, TOOLD_PIPELINE_DIR=str(pipelines)))
    assert check.message == f"{pipelines} has good"


def test_missing_secrets_of_sources_are_reported(tmp_path: Path) -> None:
    """Those of APIs and of MCP servers, by variable or file; the daemon's environment may have more."""
    (tmp_path / "toold.toml").write_text(
        """
        sources.crm = { type = "openapi", spec = "a.json", auth = { type = "bearer", env = "CRM_TOKEN" } }
        sources.shop = { type = "mcp", command = ["shop"], env = { KEY = { file = "shop.key" } } }
        sources.open = { type = "openapi", spec = "a.json" }
        """
    )

    def reported(**env: str) -> list[tuple[str, str]]:
        checks = source_secrets(settings(tmp_path), env)
        return [(check.name, f"{check.status}: {check.message}") for check in checks]

    unreadable = "warn: the file shop.key cannot be read (No such file or directory)"
    unset = "the variable CRM_TOKEN is not set in this command's environment, which is not the daemon's"
    assert reported() == [("source crm", f"warn: {unset}"), ("source shop", unreadable)]
    (tmp_path / "shop.key").write_text("hunter2")
    readable = "ok: its secrets can be read"
    assert reported(CRM_TOKEN="hunter2") == [("source crm", readable), ("source shop", readable)]


def test_missing_keys_of_prompt_servers_are_reported(tmp_path: Path) -> None:
    """A server without a key has no check."""
    (tmp_path / "toold.toml").write_text(
        """
        prompts.phoenix = { url = "https://phoenix.example", key = { env = "A_KEY" } }
        prompts.registry = { url = "https://registry.example" }
        """
    )
    (missing,) = prompt_servers(settings(tmp_path), {})
    assert (missing.name, missing.status) == ("prompts phoenix", "warn")
    assert missing.message == "the variable A_KEY is not set in this command's environment, which is not the daemon's"
    assert [check.status for check in prompt_servers(settings(tmp_path), {"A_KEY": "key"})] == ["ok"]


def test_the_programs_of_subagents_are_checked(tmp_path: Path) -> None:
    """A program that is not installed is a warning that names its table; without subagents there is no check."""
    assert subagent_programs(settings(tmp_path), {}) == []
    (tmp_path / "toold.toml").write_text("[clink.shell]\ncommand = ['sh']\n[clink.none]\ncommand = ['no-such-agent']\n")
    shell, none = subagent_programs(settings(tmp_path), {"PATH": "/usr/bin:/bin"})
    assert (shell.name, shell.status, shell.message) == ("subagent shell", "ok", "sh is installed")
    assert (none.status, none.message) == ("warn", "no-such-agent is not in PATH")
    assert "[clink.none]" in str(none.remedy)
