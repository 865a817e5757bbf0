"""``toold agents``: lists, shows, checks and runs hosted agents, shows their runs, and decides on their requests."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import click
import msgspec

from ..client import CallResult, MCPWebSocketClient
from ..protocol.daemon_address import CONFIGURATION_REFUSED
from ..protocol.error_codes import CallError
from ..protocol.name_suggestions import close_names, did_you_mean
from .agent_eval_command import command as eval_command
from .agent_replay_command import command as replay_command
from .agent_runs_command import command as runs_command
from .call_command import command as call_command
from .command_settings import WrongSettingError, settings_with
from .console_tables import Row, print_table
from .daemon_connection import NoConnectionError, connected, describe, run
from .operator_client import operator_request
from .settings_file import find_settings_file
from .terminal_output import say, say_json

HEADERS: Final[Row] = ("AGENT", "FROM", "FLOW", "ROLES", "DESCRIPTION")
_CHECKED: Final[Row] = ("ROLE", "MODEL", "PROMPT", "FUNCTIONS")
_config_option = click.option("--config", metavar="PATH", help="The settings file.  [default: the running daemon's]")
_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group()
def command() -> None:
    """List, show, check and run hosted agents, show their runs, and decide on the requests of paused runs.

    Agents come from the tables [agents.NAME] in toold.toml, the files in agent_dir, and a registry
    (docs/agents.md).
    """


@command.command("list", short_help="List the configured agents.")
@_config_option
@_json_option
def list_(config: str | None, as_json: bool) -> None:
    """List the agents of the settings file, of agent_dir and of the registry. Needs no running daemon: without one, the
    registry's agents are those that were hosted last.
    """
    agents, registered, problems = _hosted(config)
    for problem in problems:
        say(problem, err=True)
    if as_json:
        say_json(msgspec.json.encode(agents))
    elif not agents:
        say("No agents are configured; docs/agents.md shows an agent in five lines.")
    else:
        rows = [
            (
                name,
                registered.get(name, "settings"),
                agent["execution_type"],
                str(len(agent["roles"])),
                agent["description"].splitlines()[0],
            )
            for name, agent in agents.items()
        ]
        print_table(HEADERS, rows, shrink="DESCRIPTION")


@command.command(short_help="Print an agent's definition.")
@click.argument("name")
@_config_option
def show(name: str, config: str | None) -> None:
    """Print the definition of the agent NAME as JSON, with all defaults. Needs no running daemon."""
    say_json(msgspec.json.encode(_one_of(_hosted(config).agents, name)))


@command.command(short_help="Resolve prompts, models and tools of agents.")
@click.argument("name", required=False)
@_json_option
def check(name: str | None, as_json: bool) -> None:
    """Let the running daemon resolve the prompts, models and tools of the agent NAME, or of all agents of its settings
    file. No model is asked. Exits with 1 if an agent cannot run, or if the daemon refused the current configuration.
    """
    results, refused = run(_check(list(_hosted(None).agents) if name is None else [name]))
    if as_json:
        say_json(msgspec.json.encode(results))
    for agent, result in ({} if as_json else results).items():
        if "error" in result:
            say(f"{agent}: {result['error']}", err=True)
            continue
        rows = [
            (role, data["model"], f"{data['prompt_source']} {data['prompt_version']}", ", ".join(data["functions"]))
            for role, data in result["roles"].items()
        ]
        code = f" {result['code']['entry_point']} of {result['code']['package']}" if "code" in result else ""
        print_table(_CHECKED, rows, title=f"{agent} ({result['execution_type']}{code})", shrink="FUNCTIONS")
        for warning in result["warnings"]:
            say(f"{agent}: {warning}", err=True)
    for problem in refused:
        say(problem, err=True)
    sys.exit(bool(refused) or any("error" in result for result in results.values()))


async def _check(names: Sequence[str]) -> tuple[dict[str, Any], Sequence[str]]:
    """What the daemon resolves, and the problem of a configuration that it refused: the agents are those of before."""
    async with connected(all_tools=True) as client:
        results = {name: await _resolved(name, client) for name in names}
        try:
            health = (await client.call("health", {})).structured
        except CallError:  # a token may be limited to other tools
            return results, ()
    return results, [problem for problem in health.get("problems", ()) if problem.startswith(CONFIGURATION_REFUSED)]


async def _resolved(name: str, client: MCPWebSocketClient) -> Any:
    try:
        return (await client.call(name, {"prompt": "check", "dry_run": True})).structured
    except CallError as error:
        return {"error": error.message}


@command.command("run", short_help="Give an agent a task.")
@click.argument("name")
@click.argument("prompt")
@click.option("--continue", "continuation_id", metavar="ID", help="The conversation to continue, from an answer.")
@click.option("--detach", is_flag=True, help="Print the call's id at once; the run survives restarts.")
@_json_option
@click.pass_context
def run_(
    context: click.Context, name: str, prompt: str, continuation_id: str | None, detach: bool, as_json: bool
) -> None:
    """Give the agent NAME the task PROMPT and print its answer. `toold call NAME` takes all its arguments."""
    words = [f"prompt={prompt}", *([f"continuation_id={continuation_id}"] if continuation_id else [])]
    words += ["detach:=true"] if detach else []
    context.invoke(call_command, name=name, words=words, as_json=as_json, stream=False, timeout=None, toolset=None)


@command.command(short_help="Approve or reject calls of a paused run, or answer its questions.")
@click.argument("call_id")
@click.argument("request_id", required=False)
@click.option("--approve", is_flag=True, help="The call may run as requested.")
@click.option("--edit", metavar="JSON", help="The call may run with these arguments.")
@click.option("--reject", metavar="REASON", help="The call must not run; the model reads the reason.")
@click.option("--answer", metavar="TEXT", help="The answer to a question.")
@_json_option
def decide(
    call_id: str,
    request_id: str | None,
    approve: bool,
    edit: str | None,
    reject: str | None,
    answer: str | None,
    as_json: bool,
) -> None:
    """Decide on the request REQUEST_ID of the paused call CALL_ID; without REQUEST_ID, list what it waits for."""
    chosen = [name for name, value in _given(approve, edit, reject, answer).items() if value]
    if request_id is None and not chosen:
        tool, arguments = "call_status", dict[str, Any](call_id=call_id)
    elif request_id is None or len(chosen) != 1:
        raise click.UsageError("name the request and use exactly one of --approve, --edit, --reject and --answer")
    else:
        decision = decision_of(request_id, approve=approve, edit=edit, reject=reject, answer=answer)
        tool, arguments = "agent_decide", {"call_id": call_id, "decisions": [decision]}
    outcome = run(_called(tool, arguments))
    if isinstance(outcome, CallError):
        say(describe(outcome), err=True)
        sys.exit(1)
    if as_json or tool == "call_status":
        say_json(msgspec.json.encode(outcome.structured))
    else:
        say(outcome.text)


def _given(approve: bool, edit: str | None, reject: str | None, answer: str | None) -> dict[str, bool]:
    return {"approve": approve, "edit": edit is not None, "reject": reject is not None, "answer": answer is not None}


def decision_of(
    request_id: str, *, approve: bool, edit: str | None, reject: str | None, answer: str | None
) -> dict[str, Any]:
    """The decision as ``agent_decide`` takes it.

    Raises:
        click.UsageError: the edited arguments are not a JSON object.
    """
    if reject is not None:
        return {"id": request_id, "decision": "reject", **({"text": reject} if reject else {})}
    if answer is not None:
        return {"id": request_id, "decision": "answer", "text": answer}
    if approve or edit is None:
        return {"id": request_id, "decision": "approve"}
    try:
        arguments = json.loads(edit)
    except ValueError as error:
        raise click.UsageError(f"--edit is not JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise click.UsageError("--edit must be a JSON object with the arguments of the call")
    return {"id": request_id, "decision": "approve", "arguments": arguments}


command.add_command(runs_command)
command.add_command(replay_command)
command.add_command(eval_command)


async def _called(tool: str, arguments: dict[str, Any]) -> CallResult | CallError:
    async with connected(all_tools=True) as client:
        try:
            return await client.call(tool, arguments)
        except CallError as error:
            return error


class HostedAgents(NamedTuple):
    """The agents of the settings and the registry."""

    agents: dict[str, dict[str, Any]]
    """As JSON."""
    registered: dict[str, str]
    """Those of the registry, and their state."""
    problems: Sequence[str]
    """Of the registry, as the running daemon knows them."""


def _hosted(config: str | None) -> HostedAgents:
    """The agents of the settings file and of agent_dir, and those of the registry that were hosted last."""
    from ..agent_registry import KEPT_AGENTS_DIRECTORY, KeptAgents, RegisteredAgent, plan_agents
    from ..daemon import SettingsError
    from ..daemon.config.settings_mapping import hosted_agents

    file = find_settings_file(config)
    in_use = config or file.before is not None
    settings = settings_with({"config": str(file.path) if in_use else None})
    known: Sequence[RegisteredAgent] = ()
    states: dict[str, str] = {}
    problems: Sequence[str] = ()
    if settings.registry is not None:
        known = KeptAgents(settings.state_dir / KEPT_AGENTS_DIRECTORY).load(settings.registry)
        states, problems = _states_in_daemon()
    try:
        defined = hosted_agents(settings)
    except SettingsError as error:
        raise WrongSettingError(str(error)) from error
    agents, known = plan_agents(known, defined, ())
    registered = {
        agent.good.agent.name: f"registry ({states.get(agent.reference.id, 'kept')})"
        for agent in known
        if agent.hosted and agent.good
    }
    plain = {name: agent.model_dump(mode="json") for name, agent in agents.items()}
    return HostedAgents(plain, registered, problems)


def _states_in_daemon() -> tuple[dict[str, str], Sequence[str]]:
    """The states of the registry's agents by id, and what is wrong."""
    try:
        report = operator_request("GET", "/registry")
    except NoConnectionError:
        return {}, ["No daemon runs here, so the registry's agents are those that were hosted last."]
    return {agent["id"]: agent["state"] for agent in report["agents"]}, report["problems"]


def _one_of(agents: Mapping[str, dict[str, Any]], name: str) -> dict[str, Any]:
    if name not in agents:
        hint = did_you_mean(close_names(name, agents, n=1)) or "`toold agents list` lists them"
        raise click.UsageError(f"there is no agent {name!r}; {hint}")
    return agents[name]
