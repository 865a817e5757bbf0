"""``toold agents``: lists, shows, checks and runs hosted agents, shows their runs, and decides on their requests."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

import click
import msgspec

from ..client import MCPWebSocketClient
from ..protocol.daemon_address import CONFIGURATION_REFUSED
from ..protocol.error_codes import CallError
from ..protocol.name_suggestions import close_names, did_you_mean
from ..protocol.tool_call import ToolInfo
from .agent_decide_command import command as decide_command
from .agent_eval_command import command as eval_command
from .agent_replay_command import command as replay_command
from .agent_runs_command import command as runs_command
from .call_command import call_and_print
from .command_settings import WrongSettingError, settings_with
from .console_tables import Row, print_table
from .daemon_connection import NoConnectionError, connected, run
from .operator_client import operator_request
from .settings_file import find_settings_file
from .terminal_output import say, say_json
from .tools_command import find_tool

if TYPE_CHECKING:
    from ..tools import Agent

HEADERS: Final[Row] = ("AGENT", "FROM", "FLOW", "ROLES", "DESCRIPTION")
_CHECKED: Final[Row] = ("ROLE", "MODEL", "PROMPT", "FUNCTIONS")
_AGENT_ARGUMENTS: Final = frozenset({"prompt", "continuation_id", "variables", "dry_run"})
"""The arguments of every agent; no other tool has all of them."""
_NOT_HOSTED: Final = frozenset({"missing", "loading"})
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
    """List the agents of the settings file, of agent_dir and of the registry, and the deployed agents. Needs no
    running daemon. Without one, it lists the agents of an external registry as they were last hosted, and omits the
    agents of a registry that the daemon itself serves.
    """
    agents, origins, problems, absent = _hosted(config)
    for problem in problems:
        say(problem, err=True)
    if as_json:
        say_json(msgspec.json.encode(agents))
    elif not agents and not absent:
        say("No agents are configured; docs/agents.md shows an agent in five lines.")
    else:
        rows = [
            (
                name,
                origins.get(name, "settings"),
                agent["execution_type"],
                str(len(agent["roles"])),
                agent["description"].splitlines()[0],
            )
            for name, agent in agents.items()
        ]
        rows += [(name, f"registry ({state})", "-", "-", "-") for name, state in absent]
        print_table(HEADERS, rows, shrink="DESCRIPTION")


@command.command(short_help="Print an agent's definition.")
@click.argument("name")
@_config_option
def show(name: str, config: str | None) -> None:
    """Print the definition of the agent NAME as JSON, with all defaults. Needs no running daemon, except for an agent
    of the registry that the daemon itself serves.
    """
    hosted = _hosted(config)
    if name not in hosted.agents and name in _checkable(hosted):  # only the daemon has the definition
        say_json(msgspec.json.encode(operator_request("GET", f"/registry/{quote(name, safe='')}")))
    else:
        say_json(msgspec.json.encode(_one_of(hosted.agents, name)))


@command.command(short_help="Resolve prompts, models and tools of agents.")
@click.argument("name", required=False)
@_json_option
def check(name: str | None, as_json: bool) -> None:
    """Have the running daemon resolve the prompts, models and tools of the agent NAME, or of all agents in its settings
    file and in the registry that it serves. No model is asked. Exits with 1 if an agent cannot run, or if the daemon
    rejected the current configuration.
    """
    results, refused = run(_check(_checkable(_hosted(None)) if name is None else [name]))
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


def _checkable(hosted: "HostedAgents") -> list[str]:
    """The agents whose definitions this command or the daemon has."""
    return [*hosted.agents, *(name for name, state in hosted.absent if state not in _NOT_HOSTED)]


async def _check(names: Sequence[str]) -> tuple[dict[str, Any], Sequence[str]]:
    """The daemon's results, and the problems of a configuration that it rejected: it keeps the earlier agents."""
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
@click.option(
    "--continue", "continuation_id", metavar="ID", help="The conversation to continue; an earlier answer has its id."
)
@click.option("--detach", is_flag=True, help="Print the call's id at once; the run survives restarts.")
@_json_option
def run_(name: str, prompt: str, continuation_id: str | None, detach: bool, as_json: bool) -> None:
    """Give the agent NAME the task PROMPT and print its answer. If the run pauses for a person, print the requests.

    `toold call NAME` accepts all arguments of the agent.
    """
    words = [f"prompt={prompt}", *([f"continuation_id={continuation_id}"] if continuation_id else [])]
    words += ["detach:=true"] if detach else []
    call_and_print(name, words, as_json=as_json, find=_find_agent)


async def _find_agent(name: str, client: MCPWebSocketClient) -> ToolInfo:
    """The agent's tool.

    Raises:
        click.UsageError: there is no such agent.
        CallError: the tool is quarantined.
    """
    try:
        tool = await find_tool(name, client)
    except click.UsageError:
        problem = f"there is no agent {name!r}"
    else:
        if _is_agent(tool):
            return tool
        problem = f"{name!r} is a tool, not an agent; `toold call {name}` calls it"
    similar = close_names(name, [tool.name for tool in await client.list_tools() if _is_agent(tool)])
    hint = did_you_mean(similar)
    raise click.UsageError(f"{problem}; {hint}{' ' if hint else ''}`toold agents list` lists the agents")


def _is_agent(tool: ToolInfo) -> bool:
    """Whether the tool has the arguments of hosted agents."""
    return set(tool.input_schema.get("properties", {})) >= _AGENT_ARGUMENTS


command.add_command(runs_command)
command.add_command(replay_command)
command.add_command(eval_command)
command.add_command(decide_command)


class HostedAgents(NamedTuple):
    """The agents of the settings, the deployments and the registry."""

    agents: dict[str, dict[str, Any]]
    """As JSON."""
    origins: dict[str, str]
    """The origin of each agent that is not in the settings, by name; for a registry's agent, with its state."""
    problems: Sequence[str]
    """The problems of the registry that the running daemon reports."""
    absent: Sequence[tuple[str, str]]
    """The agents of the registry that are not hosted, or whose definitions only the daemon has: name, or id if it has
    none yet, and state."""


def _hosted(config: str | None) -> HostedAgents:
    """The agents of the settings file, of agent_dir and the deployments, and the last hosted agents of the registry."""
    from ..agent_registry import KEPT_AGENTS_DIRECTORY, KeptAgents, RegisteredAgent, plan_agents
    from ..daemon import SettingsError
    from ..daemon.config.settings_mapping import hosted_agents

    file = find_settings_file(config)
    in_use = config or file.before is not None
    settings = settings_with({"config": str(file.path) if in_use else None})
    known: Sequence[RegisteredAgent] = ()
    states: dict[str, str] = {}
    names: dict[str, str] = {}
    problems: Sequence[str] = ()
    # Only the daemon has the definitions of the registry that it serves.
    is_served = settings.registry is not None and settings.registry.url is None
    if settings.registry is not None:
        if not is_served:
            known = KeptAgents(settings.state_dir / KEPT_AGENTS_DIRECTORY).load(settings.registry)
        states, names, problems = _states_in_daemon(is_served=is_served)
    try:
        defined = hosted_agents(settings)
    except SettingsError as error:
        raise WrongSettingError(str(error)) from error
    deployed = _deployed(settings.state_dir, defined)
    agents, known = plan_agents(known, {**defined, **deployed}, ())
    origins = dict.fromkeys(deployed, "deployed") | {
        agent.good.agent.name: f"registry ({states.get(agent.reference.id, 'kept')})"
        for agent in known
        if agent.hosted and agent.good
    }
    plain = {name: agent.model_dump(mode="json") for name, agent in agents.items()}
    absent = [(names[id_], state) for id_, state in states.items() if is_served or state in _NOT_HOSTED]
    return HostedAgents(plain, origins, problems, absent)


def _deployed(state_dir: Path, configured: Mapping[str, "Agent"]) -> dict[str, "Agent"]:
    """The agents deployed to this daemon, except those whose name an agent of the settings has."""
    from ..deployment import DEPLOYMENTS_DIRECTORY, DeploymentRecords
    from ..tools import AgentDefinitionError, read_agent

    agents: dict[str, Agent] = {}
    for name, record in DeploymentRecords(state_dir / DEPLOYMENTS_DIRECTORY).all.items():
        if record.hosted and name not in configured:
            with suppress(AgentDefinitionError):
                agents[name] = read_agent(name, record.agent)
    return agents


def _states_in_daemon(*, is_served: bool) -> tuple[dict[str, str], dict[str, str], Sequence[str]]:
    """The states and the names of the registry's agents by id, and its problems."""
    try:
        report = operator_request("GET", "/registry")
    except NoConnectionError:
        listed = "not listed" if is_served else "those that were hosted last"
        return {}, {}, [f"No daemon runs here, so the registry's agents are {listed}."]
    rows = report["agents"]
    names = {row["id"]: row["name"] or row["id"] for row in rows}
    return {row["id"]: row["state"] for row in rows}, names, report["problems"]


def _one_of(agents: Mapping[str, dict[str, Any]], name: str) -> dict[str, Any]:
    if name not in agents:
        hint = did_you_mean(close_names(name, agents, n=1)) or "`toold agents list` lists them"
        raise click.UsageError(f"there is no agent {name!r}; {hint}")
    return agents[name]
