"""``toold agents``: list, show, check, run and decide."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.agent_registry.registry_stand_in import PIPE, record
from toold.agent_registry import KEPT_AGENTS_DIRECTORY, AgentReference, KeptAgents, RegisteredAgent, read_registry
from toold.agent_registry.registered_agents import definition_of
from toold.deployment import DEPLOYMENTS_DIRECTORY, Deployment, DeploymentRecords, DeployPlan
from toold.protocol.daemon_address import CONFIGURATION_REFUSED

from .conftest import ECHO, HINTS, Frame, Operated, Run, Send, StubDaemon, result

SETTINGS = """
[agents.helper]
description = "Helps."
prompt = "You help."

[agents.broken]
description = "Has a tool that is not there."
prompt = "p"
tools = ["ehco"]
"""
RESOLVED = {
    "execution_type": "single",
    "roles": {
        "main": {
            "model": "glm-4.7-flash",
            "prompt": "You help.",
            "prompt_source": "inline",
            "prompt_version": "1",
            "functions": [],
            "approve": [],
        }
    },
    "warnings": [],
}


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a toold.toml has two agents."""
    (tmp_path / "toold.toml").write_text(SETTINGS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answer(call: Frame, send: Send) -> None:
    """Answers dry runs, decisions and questions about a call."""
    fields: dict[str, Any] = result("done", structured={"asked": call["name"], **call["arguments"]})
    if call["name"] == "helper" and call["arguments"].get("dry_run"):
        fields = result("{}", structured=RESOLVED)
    if call["name"] == "broken":
        fields = {"outputs": [], "metadata": fields["metadata"]}
        fields["error"] = {"code": "SERVICE_UNAVAILABLE", "message": "no tool 'ehco'", "executed": "no"}
        fields["error"]["retryable"] = False
    send("call_tool_res", request_id=call["request_id"], **fields)


@pytest.fixture
def answering(daemon: StubDaemon) -> StubDaemon:
    """A daemon with agents."""
    daemon.on_call = answer
    return daemon


def test_agents_are_listed_and_shown_without_a_daemon(run: Run, directory: Path) -> None:
    """The table has name, origin, flow, roles and description; ``show`` prints the definition with its defaults."""
    listed = run("agents", "list").stdout.splitlines()
    rows = [["helper", "settings", "single", "1"], ["broken", "settings", "single", "1"]]
    assert [line.split()[:4] for line in listed[1:]] == rows
    shown = json.loads(run("agents", "show", "helper").stdout)
    assert (shown["roles"][0]["prompt"], shown["max_turns"]) == ("You help.", 100)
    unknown = run("agents", "show", "helpr")
    assert (unknown.exit_code, "did you mean 'helper'?" in unknown.stderr) == (2, True)


@pytest.mark.parametrize("command", ["list", "show", "check"])
def test_a_fallback_that_is_unknown_is_one_line(run: Run, directory: Path, command: str) -> None:
    """The commands that read the settings file say what is wrong in it."""
    (directory / "toold.toml").write_text(f'{SETTINGS}fallback = ["nomodel"]\n', encoding="utf-8")
    refused = run("agents", command, *(["helper"] if command == "show" else []))
    assert refused.exit_code == 2
    assert "agents: broken: fallback" in refused.stderr
    assert "Unknown model 'nomodel'" in refused.stderr


def test_agents_of_a_registry_are_listed_from_the_disk(run: Run, directory: Path) -> None:
    """Without a daemon, they are those that were hosted last, and the command says so."""
    table = f'[registry]\nurl = "https://registry.example"\nagents = ["{PIPE}"]\n'
    (directory / "toold.toml").write_text(f'state_dir = "state"\n{SETTINGS}\n{table}', encoding="utf-8")
    settings = read_registry({"url": "https://registry.example", "agents": [PIPE]})
    assert settings is not None
    reference = AgentReference(PIPE, None)
    agent = RegisteredAgent(reference, definition_of(record(), reference, settings))
    KeptAgents(directory / "state" / KEPT_AGENTS_DIRECTORY).keep(agent, settings)
    listed = run("agents", "list")
    assert listed.stdout.splitlines()[-1].split()[:5] == ["Pipe_Line", "registry", "(kept)", "sequential", "2"]
    assert "those that were hosted last" in listed.stderr
    assert json.loads(run("agents", "show", "Pipe_Line").stdout)["roles"][1]["prompt"] == "Write."


def test_agents_that_the_registry_does_not_give_are_listed(run: Run, directory: Path, operated: Operated) -> None:
    """While a registry cannot be reached, the list has the agents that are not hosted, with their state."""
    table = f'[registry]\nurl = "https://registry.example"\nagents = ["{PIPE}"]\n'
    file = directory / "toold.toml"
    file.write_text(table, encoding="utf-8")
    operated.answers["GET /operator/settings"] = (200, {"config": str(file), "settings": {}})
    row = {"id": PIPE, "name": None, "state": "missing"}
    operated.answers["GET /operator/registry"] = (200, {"agents": [row], "problems": ["it cannot be reached"]})
    listed = run("agents", "list")
    assert listed.stdout.splitlines()[1].split() == [PIPE, "registry", "(missing)", "-", "-", "-"]
    assert listed.stderr == "it cannot be reached\n"


def test_agents_that_the_daemon_serves_or_that_were_deployed_are_listed(
    run: Run, directory: Path, operated: Operated
) -> None:
    """The daemon names those of the registry that it serves; a deployment is on the disk."""
    file = directory / "toold.toml"
    file.write_text(f'state_dir = "state"\n{SETTINGS}\n[registry]\nserve = true\nagents = "*"\n', encoding="utf-8")
    operated.answers["GET /operator/settings"] = (200, {"config": str(file), "settings": {}})
    row = {"id": PIPE, "name": "Writer", "state": "current"}
    operated.answers["GET /operator/registry"] = (200, {"agents": [row], "problems": []})
    plan = DeployPlan(service_name="acme-greeter", customer_id="acme", target="here")
    definition = {"description": "Greets.", "prompt": "Greet."}
    deployment = Deployment(plan=plan, principal="local", job_id="1", created_at=0.0, agent=definition, hosted=True)
    DeploymentRecords(directory / "state" / DEPLOYMENTS_DIRECTORY).put(deployment)
    rows = [line.split()[:4] for line in run("agents", "list").stdout.splitlines()]
    assert rows[-2:] == [["acme-greeter", "deployed", "single", "1"], ["Writer", "registry", "(current)", "-"]]
    operated.answers["GET /operator/registry/Writer"] = (200, {"name": "Writer", "roles": []})
    assert json.loads(run("agents", "show", "Writer").stdout) == {"name": "Writer", "roles": []}


def test_without_agents_the_list_says_where_to_begin(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty list names the page that shows an agent."""
    monkeypatch.chdir(tmp_path)
    assert "docs/agents.md" in run("agents", "list").stdout


def test_a_check_resolves_an_agent(run: Run, answering: StubDaemon) -> None:
    """The daemon resolves prompts, models and tools; an agent that cannot run is named, and the exit code is 1."""
    checked = run("agents", "check", "helper")
    assert checked.exit_code == 0
    assert "glm-4.7-flash" in checked.stdout
    broken = run("agents", "check", "broken")
    assert (broken.exit_code, broken.stderr.strip()) == (1, "broken: no tool 'ehco'")


def test_a_check_reports_a_refused_configuration(run: Run, answering: StubDaemon) -> None:
    """The daemon still has the agent of before, so the check prints why it refused the new file, and fails."""
    refused = f"{CONFIGURATION_REFUSED}: agents.helper: threshold"

    def answer_with_problem(call: Frame, send: Send) -> None:
        if call["name"] == "health":
            health = {"problems": ["a source fails", refused]}
            send("call_tool_res", request_id=call["request_id"], **result("{}", structured=health))
        else:
            answer(call, send)

    answering.on_call = answer_with_problem
    checked = run("agents", "check", "helper")
    assert (checked.exit_code, checked.stderr.strip()) == (1, refused)


@pytest.mark.parametrize(
    ("options", "decision"),
    [
        (["--approve"], {"decision": "approve"}),
        (["--edit", '{"title": "T"}'], {"decision": "approve", "arguments": {"title": "T"}}),
        (["--reject", "too dear"], {"decision": "reject", "text": "too dear"}),
        (["--answer", "yes"], {"decision": "answer", "text": "yes"}),
    ],
)
def test_a_decision_is_sent(run: Run, daemon: StubDaemon, options: list[str], decision: dict[str, Any]) -> None:
    """Each way to decide becomes one decision of ``agent_decide``."""
    assert run("agents", "decide", "9-1", "t2.0", *options).exit_code == 0
    call = daemon.wait_for("call_tool")
    assert call["name"] == "agent_decide"
    assert call["arguments"] == {"call_id": "9-1", "decisions": [{"id": "t2.0", **decision}]}


REQUESTS = [
    {"id": "t2.0", "kind": "approve", "tool": "create_ticket", "arguments": {"title": "T"}},
    {"id": "a[0]/t3.0", "kind": "question", "text": "Which one?"},
]
HELPER: Frame = {
    "name": "helper",
    "description": "Helps.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "prompt": {"type": "string"},
            "continuation_id": {"type": "string"},
            "variables": {"type": "object"},
            "dry_run": {"type": "boolean"},
        },
    },
    "annotations": HINTS,
}


def answer_for_paused_run(call: Frame, send: Send) -> None:
    """Answers for the run 9-1, which paused and continues as the call 9-2."""
    fields: dict[str, Any] = result("{}", structured={"call_id": "9-2", "state": "paused", "requests": REQUESTS})
    asked = call["arguments"]
    match call["name"]:
        case "helper":
            fields = result("{}", structured={"paused": True, "call_id": "9-2", "requests": REQUESTS})
        case "call_status" if asked["call_id"] != "9-2":
            fields = result("{}", structured={"call_id": asked["call_id"], "state": "done"})
        case "agent_decide" if asked["call_id"] == "9-2":
            fields = result("decided", structured={})
        case "agent_runs" if asked["run_id"] == "9-1":
            fields = result("{}", structured={"run_id": "9-1", "call_id": "9-2", "state": "paused"})
        case "agent_decide" | "agent_runs":
            error = {"code": "NOT_FOUND", "message": "no such call", "executed": "no", "retryable": False}
            fields = {"outputs": [], "metadata": fields["metadata"], "error": error}
    send("call_tool_res", request_id=call["request_id"], **fields)


def test_the_id_of_a_run_stands_for_the_call_that_waits(run: Run, daemon: StubDaemon) -> None:
    """``decide RUN`` lists and decides on what the run waits for, under the id of the call that continues it; a call
    that waits for nothing says so, with the exit code 1."""
    daemon.on_call = answer_for_paused_run
    listed = run("agents", "decide", "9-1")
    assert (listed.exit_code, "toold agents decide 9-2 t2.0 --approve" in listed.stdout) == (0, True)
    assert json.loads(run("agents", "decide", "9-1", "--json").stdout)["call_id"] == "9-2"
    decided = run("agents", "decide", "9-1", "t2.0", "--approve")
    assert (decided.exit_code, decided.stdout) == (0, "decided\n")
    ended = run("agents", "decide", "9-7")
    assert (ended.exit_code, ended.stderr) == (1, "The call 9-7 is done: it is not waiting for a decision.\n")
    assert run("agents", "decide", "9-7", "t2.0", "--approve").exit_code == 1


def test_a_paused_run_prints_what_it_asks(run: Run, daemon: StubDaemon) -> None:
    """People read each request and the command that decides on it; ``--json`` prints JSON."""
    daemon.tools, daemon.on_call = [HELPER], answer_for_paused_run
    asked = run("agents", "run", "helper", "Do it.").stdout
    assert 't2.0: it wants to call create_ticket with {"title":"T"}\n  toold agents decide 9-2 t2.0 --approve' in asked
    assert "it asks: Which one?\n  toold agents decide 9-2 'a[0]/t3.0' --answer TEXT" in asked
    assert json.loads(run("agents", "run", "helper", "Do it.", "--json").stdout)["structured"]["paused"] is True


def test_a_task_for_no_agent_is_refused(run: Run, daemon: StubDaemon) -> None:
    """``run`` suggests agents of a similar name, says that a tool is not an agent, and names the command for a list."""
    daemon.tools = [HELPER, ECHO]
    for name, problem in (
        ("helpr", "there is no agent 'helpr'; did you mean 'helper'? `toold agents list` lists the agents"),
        ("echo", "'echo' is a tool, not an agent; `toold call echo` calls it; `toold agents list` lists the agents"),
    ):
        refused = run("agents", "run", name, "Do it.")
        assert (refused.exit_code, problem in refused.stderr) == (2, True), refused.stderr


@pytest.mark.parametrize("options", [["t2.0"], ["t2.0", "--approve", "--reject", "no"], ["t2.0", "--edit", "[]"]])
def test_an_unclear_decision_is_refused(run: Run, options: list[str]) -> None:
    """No decision, two decisions, and arguments that are not an object are wrong command lines."""
    assert run("agents", "decide", "9-1", *options).exit_code == 2


def test_without_a_request_the_open_ones_are_listed(run: Run, daemon: StubDaemon) -> None:
    """``decide CALL_ID`` asks for the call's state, which lists its requests."""
    run("agents", "decide", "9-1")
    assert daemon.wait_for("call_tool")["name"] == "call_status"


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["helper", "--state", "paused"], {"agent": "helper", "states": ["paused"], "limit": 20}),
        (["--limit", "5"], {"states": [], "limit": 5}),
        (["0cf60e199374-1f"], {"run_id": "0cf60e199374-1f"}),
        (["show", "0cf60e199374-2/t1.0"], {"run_id": "0cf60e199374-2/t1.0"}),
    ],
)
def test_runs_are_listed_or_shown(run: Run, answering: StubDaemon, words: list[str], arguments: dict[str, Any]) -> None:
    """A word that is the id of a call names a run, any other an agent."""
    run("agents", "runs", *words, "--json")
    assert answering.wait_for("call_tool")["arguments"] == arguments


def test_a_prompt_is_a_file_or_a_name(run: Run, answering: StubDaemon, directory: Path) -> None:
    """``replay --prompt`` sends the text of a file, or the name of a prompt; a path that is not there is an error."""
    (directory / "new.md").write_text("Be brief.", encoding="utf-8")
    assert run("agents", "replay", "9-1", "--prompt", "new.md", "--model", "kimi-k2.6").exit_code == 0
    call = answering.wait_for("call_tool")
    expected = {
        "run_id": "9-1",
        "prompt": "Be brief.",
        "model": "kimi-k2.6",
        "tools": "recorded",
        "allow_writes": False,
    }
    assert (call["name"], call["arguments"]) == ("agent_replay", expected)
    missing = run("agents", "replay", "9-1", "--prompt", "old.md")
    assert (missing.exit_code, "--prompt old.md: cannot be read" in missing.stderr) == (2, True)
    assert '"prompt_ref":"shorter"' in run("agents", "replay", "9-1", "--prompt", "shorter", "--json").stdout
    assert run("agents", "replay", "9-1", "--allow-writes").exit_code == 2


def test_an_evaluation_fails_by_its_exit_code(run: Run, answering: StubDaemon, directory: Path) -> None:
    """Cases that pass less often than wanted end with 1, unless less is wanted; a wrong file ends with 2."""
    answering.tools.append({**answering.tools[0], "name": "helper"})
    case = {"name": "a", "prompt": "p", "expect": [{"contains": "x"}]}
    (directory / "cases.json").write_text(json.dumps({"agent": "helper", "cases": [case]}), encoding="utf-8")
    failed = run("agents", "eval", "cases.json", "--runs", "2")
    assert (failed.exit_code, "0/2" in failed.stdout) == (1, True)
    assert run("agents", "eval", "cases.json", "--min-pass", "0", "--json").exit_code == 0
    (directory / "cases.json").write_text("{}", encoding="utf-8")
    wrong = run("agents", "eval", "cases.json")
    assert (wrong.exit_code, "cases: " in wrong.stderr) == (2, True)
    many = {"agent": "helper", "runs": 100, "cases": [{**case, "name": str(number)} for number in range(101)]}
    (directory / "cases.json").write_text(json.dumps(many), encoding="utf-8")
    assert "10,100 runs; at most 10,000" in run("agents", "eval", "cases.json").stderr
