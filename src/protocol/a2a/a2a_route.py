"""The paths of A2A on the HTTP port. Pure."""

from typing import Final, Literal, NamedTuple

from .a2a_version import A2AVersion
from .agent_card import OLD_PREFIX
from .named_results import RESULTS_PATH

AGENTS_PATH: Final = "/agents"
_WELL_KNOWN: Final = "/.well-known/"
CARD_PATH: Final = f"{_WELL_KNOWN}agent-card.json"
OLD_CARD_PATH: Final = f"{_WELL_KNOWN}agent.json"

JWKS_PATH: Final = f"{_WELL_KNOWN}jwks.json"
_MESSAGE_PATHS: Final = {"/message:send": "SendMessage", "/message:stream": "SendStreamingMessage"}
_TASK_ACTIONS: Final = {"cancel": "CancelTask", "subscribe": "SubscribeToTask"}

RouteKind = Literal["catalogue", "rpc", "card", "rest", "result"]


class A2ARoute(NamedTuple):
    """The target of a path."""

    kind: RouteKind
    method: str
    """The HTTP method that the path accepts; ``*``: any."""
    agent: str | None = None
    """The agent's name; None: the default agent."""
    version: A2AVersion | None = None
    """The version of a card, or of all requests to this path; None: the request names its version."""
    operation: str = ""
    """For HTTP+JSON: the equivalent method of JSON-RPC."""
    task_id: str | None = None
    config_id: str | None = None
    """The id of a push configuration; empty: all configurations of the task, or a new one."""
    handle: str = ""
    """The handle of a retained result."""


def is_a2a_path(path: str) -> bool:
    """Whether a path of the HTTP port belongs to A2A. ``/`` belongs to A2A for POST only."""
    return path == AGENTS_PATH or path.startswith(f"{AGENTS_PATH}/") or path in {CARD_PATH, OLD_CARD_PATH, JWKS_PATH}


def route_of(path: str, method: str) -> A2ARoute | None:
    """The target of a request with this HTTP method and path; None if there is none."""
    if path.rstrip("/") == AGENTS_PATH:
        return A2ARoute("catalogue", "GET")
    if path in {"/", CARD_PATH, OLD_CARD_PATH}:
        return _of_agent(path, None, method)
    agent, slash, rest = path.removeprefix(f"{AGENTS_PATH}/").partition("/")
    return _of_agent(slash + rest, agent, method) if agent else None


def _of_agent(rest: str, agent: str | None, method: str) -> A2ARoute | None:
    old_rest = rest
    old = rest.startswith(f"{OLD_PREFIX}/") or rest == OLD_PREFIX
    if old:
        rest = rest.removeprefix(OLD_PREFIX)
    if rest in {"", "/"}:
        return A2ARoute("rpc", "POST", agent, "0.3" if old else None)
    if rest in {CARD_PATH, OLD_CARD_PATH}:
        return A2ARoute("card", "GET", agent, "0.3" if old or rest == OLD_CARD_PATH else "1.0")
    if rest != old_rest or agent is None:
        return None
    if rest.startswith(RESULTS_PATH) and rest != RESULTS_PATH:
        return A2ARoute("result", "GET", agent, handle=rest.removeprefix(RESULTS_PATH))
    return _of_rest(rest, agent, method)


def _of_push(agent: str, task: str, below: str, method: str) -> A2ARoute | None:
    name, slash, config_id = below.partition("/")
    if name != "pushNotificationConfigs" or (slash and (not config_id or "/" in config_id)):
        return None
    actions = {"GET": "Get", "DELETE": "Delete"} if config_id else {"GET": "List", "POST": "Create"}
    taken = method if method in actions else "GET"
    return A2ARoute("rest", taken, agent, None, actions[taken], task, config_id)


def _of_rest(rest: str, agent: str, method: str) -> A2ARoute | None:
    """The paths of HTTP+JSON."""
    if rest in _MESSAGE_PATHS:
        return A2ARoute("rest", "POST", agent, operation=_MESSAGE_PATHS[rest])
    if rest == "/tasks":
        return A2ARoute("rest", "GET", agent, operation="ListTasks")
    if rest == "/extendedAgentCard":
        return A2ARoute("rest", "GET", agent, operation="GetExtendedAgentCard")
    task, slash, below = rest.removeprefix("/tasks/").partition("/")
    if not rest.startswith("/tasks/") or not task:
        return None
    if slash:
        return _of_push(agent, task, below, method)
    task_id, _, action = task.partition(":")
    if not action:
        return A2ARoute("rest", "GET", agent, operation="GetTask", task_id=task)
    if action not in _TASK_ACTIONS:
        return None
    # The specification's text and its proto file differ on how to subscribe.
    return A2ARoute("rest", "*" if action == "subscribe" else "POST", agent, None, _TASK_ACTIONS[action], task_id)
