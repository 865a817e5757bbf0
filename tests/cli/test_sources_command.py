"""``toold sources``: list, check and approve."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from toold.cli.source_add_command import _default_name

DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.0",
    "info": {"title": "The CRM"},
    "servers": [{"url": "https://crm.example"}],
    "paths": {"/a/{id}": {"get": {"operationId": "getA"}, "head": {}}},
}


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a toold.toml has two sources, one of whose documents is missing."""
    (tmp_path / "crm.json").write_text(json.dumps(DOCUMENT), encoding="utf-8")
    tables = "".join(f'[sources.{name}]\ntype = "openapi"\nspec = "{name}.json"\n' for name in ("crm", "shop"))
    (tmp_path / "toold.toml").write_text(tables, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_check_lists_repaired_and_omitted_parts(run: Any, directory: Path) -> None:
    """Omitted parts come first per source; an unusable document is exit code 1."""
    result = run("sources", "check")
    assert result.stdout.splitlines() == [
        "crm: omitted: HEAD /a/{id}: HEAD does not become a tool",
        "crm: repaired: GET /a/{id}: the path parameter 'id' is not declared; treated as a string",
        "crm: 1 tools of The CRM",
        "shop: shop.json does not exist or is not a file",
        f"Checked {directory / 'toold.toml'}.",
    ]
    assert result.exit_code == 1


def test_one_source_may_be_checked(run: Any, directory: Path) -> None:
    """Its tools by name, as JSON; one that is not there is a wrong command line."""
    result = run("sources", "check", "crm", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["crm"]["tools"] == ["crm_getA"]
    wrong = run("sources", "check", "crn")
    assert wrong.exit_code == 2
    assert "did you mean 'crm'?" in wrong.stderr


def test_a_missing_secret_of_an_api_is_reported(run: Any, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The document can be checked without it, and the daemon may have the variable, so the exit code is 0."""
    table = 'type = "openapi"\nspec = "crm.json"\nauth = {type = "bearer", env = "CRM_TOKEN"}'
    (directory / "toold.toml").write_text(f"[sources.crm]\n{table}\n", encoding="utf-8")
    monkeypatch.delenv("CRM_TOKEN", raising=False)
    result = run("sources", "check")
    assert result.exit_code == 0
    unset = "the variable CRM_TOKEN is not set in this command's environment, which is not the daemon's"
    assert result.stdout.splitlines()[-3:-1] == [f"crm: {unset}; calls that need it fail", "crm: 1 tools of The CRM"]


@pytest.mark.parametrize(
    "table",
    [
        'command = ["a-program"]\nenv = {TOKEN = {env = "CRM_TOKEN"}}',
        'url = "https://crm.example/mcp"\nauth = {type = "bearer", env = "CRM_TOKEN"}',
    ],
    ids=["program", "address"],
)
def test_a_check_uses_its_own_environment(run: Any, directory: Path, table: str) -> None:
    """A secret's variable that is not set here may well be set in the daemon's, of which nothing is known."""
    (directory / "toold.toml").write_text(f'[sources.crm]\ntype = "mcp"\n{table}\n', encoding="utf-8")
    result = run("sources", "check")
    assert result.exit_code == 1
    assert result.stdout == (
        "crm: the variable CRM_TOKEN is not set in this command's environment, which is not the daemon's; "
        f"set it here to check the server\nChecked {directory / 'toold.toml'}.\n"
    )


def test_a_wrong_setting_is_named(run: Any, directory: Path) -> None:
    """With its file, as at the start of the daemon."""
    (directory / "toold.toml").write_text('[sources.crm]\ntype = "opnapi"\n', encoding="utf-8")
    result = run("sources", "check")
    assert result.exit_code == 2
    assert "sources (toold.toml): [sources.crm] type must be one of openapi, mcp, a2a" in result.stderr


def test_without_sources_the_next_step_is_printed(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This is not an error."""
    monkeypatch.chdir(tmp_path)
    result = run("sources", "check")
    assert (result.exit_code, result.stdout) == (
        0,
        f"{tmp_path / 'state/toold.toml'} has no sources; `toold sources add` adds one (docs/sources.md).\n",
    )


def test_the_running_daemons_file_is_checked(run: Any, operated: Any, directory: Path) -> None:
    """As `add` changes it, wherever the command runs; --config names another one."""
    theirs = directory / "theirs.toml"
    theirs.write_text('[sources.memo]\ntype = "openapi"\nspec = "crm.json"\n', encoding="utf-8")
    settings = {"state_dir": {"value": str(directory / "state"), "origin": "default"}}
    operated.answers["GET /operator/settings"] = (200, {"config": str(theirs), "settings": settings})
    result = run("sources", "check", "memo")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, f"Checked {theirs}.")
    refused = run("sources", "check", "crm")
    assert f"there is no source 'crm' in {theirs}; configured: memo" in refused.stderr
    assert "crm: 1 tools" in run("sources", "check", "crm", "--config", "toold.toml").stdout


def test_the_daemons_sources_are_listed(run: Any, operated: Any) -> None:
    """Each with its state and its tools; as JSON too."""
    row = {
        "name": "crm",
        "type": "openapi",
        "state": "failing",
        "tools": 3,
        "repaired": 1,
        "omitted": 2,
        "quarantined": 4,
        "problem": "away",
    }
    operated.answers["GET /operator/sources"] = (200, {"sources": [row]})
    assert "crm     openapi  failing  3      1         2        4            away" in run("sources", "list").stdout
    assert json.loads(run("sources", "list", "--json").stdout) == [row]
    operated.answers["GET /operator/sources"] = (200, {"sources": []})
    assert "No sources are configured" in run("sources", "list").stdout


# --- add -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory where a new toold.toml is made: the state directory. Its parent is the current one, with a
    document."""
    (tmp_path / "crm.json").write_text(json.dumps(DOCUMENT), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "state"


def added(directory: Path) -> Any:
    return tomllib.loads((directory / "toold.toml").read_text()).get("sources", {})


def test_a_document_is_added_once_it_has_been_tried(run: Any, empty: Path) -> None:
    """The name is the file's, or the given one; the path is absolute; the result says which process reads the file."""
    result = run("sources", "add", "crm.json")
    assert result.exit_code == 0, result.output
    assert f"Added crm to {empty / 'toold.toml'}. It has 1 tool of The CRM. The next daemon that starts reads it." in (
        result.stdout
    )
    assert run("sources", "add", "--name", "two", "--bearer-env", "CRM_TOKEN", "crm.json").exit_code == 0
    spec = {"type": "openapi", "spec": str(empty.parent / "crm.json")}
    assert added(empty) == {"crm": spec, "two": spec | {"auth": {"type": "bearer", "env": "CRM_TOKEN"}}}
    assert (empty / "toold.toml").stat().st_mode & 0o777 == 0o600


def test_a_file_whose_servers_are_private_is_added_with_a_warning(run: Any, empty: Path) -> None:
    """Calls to them would be refused, until --allow-private allows those hosts; metadata services stay refused."""
    servers = [{"url": "http://127.0.0.1:9/v1"}]
    paths = {**DOCUMENT["paths"], "/b": {"get": {"servers": [{"url": "http://169.254.169.254/"}]}}}
    (empty.parent / "crm.json").write_text(json.dumps(DOCUMENT | {"servers": servers, "paths": paths}))
    line = "calls to 127.0.0.1 are refused, since it is loopback; allow_private of [sources.crm] can allow it"
    result = run("sources", "add", "crm.json")
    assert f"warning: {line}" in result.stderr
    assert "allow_private" not in added(empty)["crm"]
    assert f"crm: {line}" in run("sources", "check").stdout
    assert run("sources", "remove", "crm").exit_code == 0
    allowed = run("sources", "add", "--allow-private", "crm.json")
    assert added(empty)["crm"]["allow_private"] == ["127.0.0.1"]
    assert "calls to 127.0.0.1" not in allowed.stderr
    assert "calls to 169.254.169.254 are refused, since it is a cloud metadata service" in allowed.stderr
    assert run("sources", "add", "--name", "x", "--no-check", "--allow-private", "crm.json").exit_code == 2


def test_a_variable_that_the_daemon_may_not_have_is_named(
    run: Any, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon gets no new variables, so a file is recommended."""
    words = ("sources", "add", "--bearer-env", "SHOP_TOKEN", "crm.json")
    assert "warning: SHOP_TOKEN is not set here; calls fail unless" in run(*words).stderr
    monkeypatch.setenv("SHOP_TOKEN", "secret")
    assert "warning" not in run(*words).stderr


def test_a_source_is_removed_after_a_backup(run: Any, directory: Path) -> None:
    """With its tables; the others stay. An unknown name is an error that lists the known ones."""
    file = directory / "toold.toml"
    text = file.read_text()
    file.write_text(
        f'{text}auth = {{ type = "bearer", env = "T" }}\n[sources.more]\ntype = "mcp"\nurl = "https://m.example"\n'
    )
    result = run("sources", "remove", "shop")
    assert result.exit_code == 0, result.output
    assert f"Removed shop from {file}." in result.stdout
    assert set(added(directory)) == {"crm", "more"}
    assert (directory / "toold.toml.bak1").exists()
    unknown = run("sources", "remove", "shop")
    assert (unknown.exit_code, "configured: crm, more" in unknown.stderr) == (2, True)


def test_a_programs_files_are_absolute(run: Any, empty: Path) -> None:
    """The program is started in another directory; words that name no file here stay."""
    assert (
        run("sources", "add", "--no-check", "--name", "notes", "sh", "./crm.json", "crm.json", "sub", "-c").exit_code
        == 0
    )
    path = str(empty.parent / "crm.json")
    assert added(empty)["notes"]["command"] == ["sh", path, path, "sub", "-c"]


def test_a_source_that_cannot_be_used_is_not_added(run: Any, empty: Path) -> None:
    """Each reading of the target is reported with its problem; --no-check adds the source anyway."""
    words = ("sources", "add", "http://127.0.0.1:9/api")
    result = run(*words)
    assert result.exit_code == 1
    assert "as openapi: 127.0.0.1 is loopback" in result.stderr
    assert "; as mcp: " in result.stderr
    assert "; as a2a: " in result.stderr
    assert "To allow this address, use --allow-private. To add" in result.stderr
    assert not (empty / "toold.toml").exists()
    assert run(*words[:2], "--no-check", "--type", "mcp", "--allow-private", words[2]).exit_code == 0
    assert added(empty) == {"local": {"type": "mcp", "url": words[2], "allow_private": ["127.0.0.1"]}}
    card = "https://far.example/.well-known/agent-card.json"
    assert run("sources", "add", "--no-check", card).exit_code == 0
    assert added(empty)["far"] == {"type": "a2a", "url": card}


@pytest.mark.process
def test_a_command_is_started_once_to_list_its_tools(run: Any, empty: Path) -> None:
    """Its arguments may look like options; its variables are references, or text that contains no secret."""
    program = Path(__file__).parents[1] / "sources/mcp/server_program.py"
    result = run("sources", "add", "--env", "LOG=quiet", "--name", "mine", sys.executable, "-u", str(program))
    assert result.exit_code == 0, result.output
    assert added(empty) == {
        "mine": {"type": "mcp", "command": [sys.executable, "-u", str(program)], "env": {"LOG": "quiet"}}
    }


def test_adding_compares_with_the_pins_of_the_daemon_s_database(
    run: Any, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting ``store`` may come from a variable, as for the daemon."""
    monkeypatch.setenv("TOOLD_STORE", "postgresql://127.0.0.1:1/none")
    monkeypatch.setenv("TOOLD_CLUSTER_SECRET", "s" * 32)
    added = run("sources", "add", "--name", "other", "crm.json")
    assert (added.exit_code, "the pins of the sources cannot be read" in added.output) == (1, True), added.output
    assert "other" not in (directory / "toold.toml").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--env", "API_KEY=abc", "sh"], "the value of API_KEY looks like a secret"),
        (["--bearer-env", "T", "sh"], "the options for URLs do not apply to a command"),
        (["no-such-program-at-all", "x"], "is neither a URL, nor a .json or .yaml file, nor a program"),
        (["https://x.example/mcp", "more"], "a URL takes no arguments"),
        (["sh 'unfinished"], "cannot be split into words: No closing quotation"),
        (["--name", "crm", "crm.json"], "a source named 'crm' already exists"),
    ],
)
def test_a_wrong_command_line_adds_nothing(run: Any, directory: Path, words: list[str], message: str) -> None:
    """The message says what to write, and repeats no secret."""
    before = (directory / "toold.toml").read_text()
    result = run("sources", "add", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "abc" not in result.output
    assert (directory / "toold.toml").read_text() == before


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (["https://api.stripe.com/v1/openapi.yaml"], "stripe"),
        (["http://127.0.0.1:3000/mcp"], "local"),
        (["npx", "-y", "@modelcontextprotocol/server-filesystem@1.2", "/srv"], "filesystem"),
        (["uvx", "mcp-server-git"], "git"),
        (["npx -y @acme/tracker-mcp"], "tracker"),
        (["docs/petstore.yaml"], "petstore"),
        (["python", "/opt/server.py"], "python"),
    ],
)
def test_a_source_is_named_after_what_it_is(target: list[str], name: str) -> None:
    """Not after the program that starts it, or the host's label that all APIs have."""
    assert _default_name(target) == name
