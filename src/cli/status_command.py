"""``toold status``: the daemon's current state and recent calls, from its ``status`` tool."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click
import msgspec

from .console_tables import Row, print_table
from .daemon_connection import connected, run
from .terminal_output import say, say_json


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--recent",
    metavar="N",
    type=click.IntRange(0, 100),
    default=10,
    show_default=True,
    help="Number of recent calls to show.",
)
def command(as_json: bool, recent: int) -> None:
    """Show the running daemon's version, uptime, connections, limits, providers, totals, paused and recent calls.

    With a token that lacks the operator right, shows only the totals and calls of the token's own principal
    (docs/tokens.md).
    """
    url, status = run(_fetch(recent))
    if as_json:
        say_json(msgspec.json.encode(status))
        return
    say(headline(url, status))
    for problem in _sequence(status.get("problems")):
        say(f"  ! {cell(problem)}")
    for title, headers, rows in sections(status):
        if rows:
            say("")
            print_table(headers, rows, title=title, shrink="SESSION")


async def _fetch(recent: int) -> tuple[str, dict[str, Any]]:
    async with connected() as client:
        result = await client.call("status", {"recent": recent})
    return client.url, result.structured if isinstance(result.structured, dict) else {}


def headline(url: str, status: Mapping[str, Any]) -> str:
    """One line: version, address, pid, uptime, connections."""
    parts = [f"toold {status.get('version', '?')} at {url}"]
    if (pid := status.get("pid")) is not None:
        parts.append(f"pid {pid}")
    if isinstance(uptime := status.get("uptime_s"), int | float):
        parts.append(f"up {duration(uptime)}")
    if (count := status.get("connections")) is not None:
        parts.append(f"{cell(count)} connection{'' if count == 1 else 's'}")
    if status.get("simulated"):
        parts.append("simulated")
    return ", ".join(parts)


Section = tuple[str, Row, Sequence[Row]]
_SHOWN_REQUESTS: Final = 3
_USAGE: Final = ("Usage by day (UTC)", ("DAY", "GROUP", "COMPLETIONS", "TOKENS IN", "TOKENS OUT", "COST"))


def sections(status: Mapping[str, Any]) -> list[Section]:
    """Title, headers and rows of each table. If a daemon of another version omits a field, its table is empty."""
    return [
        ("Nodes", ("NODE", "STATE", "CONNECTIONS", "CALLS", "VERSION", "PROBLEMS"), _nodes(status.get("nodes"))),
        ("Limits", ("LIMIT", "IN USE", "MAX", "WAITING"), _limits(status.get("limits"))),
        ("Providers", ("PROVIDER", "STATE", "TRANSPORT"), _providers(status.get("providers"))),
        ("Sources", ("SOURCE", "STATE", "TOOLS"), _sources(status.get("sources"))),
        ("Registry", ("AGENT", "STATE", "ID"), _registry(status.get("registry"))),
        totals_section(status),
        (*_USAGE, _usage(status.get("usage"))),
        ("Budget", ("PROVIDER", "CURRENCY", "PER DAY", "SPENT", "RESERVED", "RESETS"), _budgets(status)),
        ("Audit", ("STORE", "STATE", "ROWS", "UNSENT", "REFUSED", "DROPPED"), _audit(status.get("audit"))),
        (
            "Paused calls",
            ("ID", "TOOL", "PRINCIPAL", "AGE", "DECIDE BEFORE", "WAITS FOR"),
            _paused(status.get("paused")),
        ),
        (
            "Recent calls",
            ("WHEN", "TOOL", "OUTCOME", "LATENCY", "MODEL", "PRINCIPAL", "SESSION"),
            _recent(status.get("recent")),
        ),
    ]


def _nodes(nodes: object) -> Sequence[Row]:
    rows = map(_mapping, _sequence(nodes))
    return [
        (
            f"{cell(row.get('name'))}{' (this one)' if row.get('this') else ''}",
            cell(row.get("state")),
            *(cell(row.get(figure)) for figure in ("connections", "calls", "version")),
            "does not answer" if row.get("answers") is False else _problems_of(row),
        )
        for row in rows
    ]


def _problems_of(node: Mapping[str, Any]) -> str:
    problems = _sequence(node.get("problems"))
    return cell(len(problems)) if problems else "none"


def _limits(limits: object) -> Sequence[Row]:
    rows = []
    for name, value in _mapping(limits).items():
        group = _mapping(value)
        nested = {name: group} if "limit" in group else {f"{name}/{key}": _mapping(part) for key, part in group.items()}
        rows += [
            (cell(label), cell(part.get("in_use")), cell(part.get("limit")), cell(part.get("waiting")))
            for label, part in nested.items()
            if part
        ]
    return rows


def _providers(providers: object) -> Sequence[Row]:
    rows = []
    for provider in map(_mapping, _sequence(providers)):
        state = "simulated" if provider.get("simulated") else "real"
        if not provider.get("available", True):
            state = f"not available: {cell(provider.get('missing'))}"
        rows.append((cell(provider.get("name")), state, cell(provider.get("transport"))))
    return rows


def _sources(sources: object) -> Sequence[Row]:
    rows = map(_mapping, _sequence(sources))
    return [(cell(row.get("name")), cell(row.get("state")), cell(row.get("tools"))) for row in rows]


def _registry(registry: object) -> Sequence[Row]:
    rows = map(_mapping, _sequence(_mapping(registry).get("agents")))
    return [(cell(row.get("name")), cell(row.get("state")), cell(row.get("id"))) for row in rows]


def totals_section(status: Mapping[str, Any]) -> Section:
    """The totals of all calls, by tool and by model."""
    return (_totals_title(status), ("GROUP", "CALLS", "ERRORS", "TOKENS IN", "TOKENS OUT", "COST"), _totals(status))


def _usage(days: object) -> Sequence[Row]:
    """The total of each day; the newest day also by provider, model and tool."""
    rows = []
    for number, day in enumerate(map(_mapping, _sequence(days))):
        parts = [("all", day)]
        if number == 0:
            for kind in ("provider", "model", "tool"):
                parts += [
                    (f"{kind} {cell(name)}", _mapping(sums)) for name, sums in _mapping(day.get(f"by_{kind}")).items()
                ]
        rows += [(cell(day.get("day")), group, *_used(sums)) for group, sums in parts]
    return rows


def _used(sums: Mapping[str, Any]) -> Row:
    """Completions, tokens and cost; ``about`` precedes token counts that are partly estimated."""
    about = "about " if sums.get("estimated") else ""
    counts = (about + cell(sums.get(key)) for key in ("input_tokens", "output_tokens"))
    return (cell(sums.get("completions")), *counts, _cost(sums.get("cost")))


def _budgets(status: Mapping[str, Any]) -> Sequence[Row]:
    """The budget of all providers, then those of single ones."""
    single = _mapping(status.get("provider_budgets")).items()
    return [row for name, budget in (("all", status.get("budget")), *single) for row in _budget(name, budget)]


def _budget(provider: str, budget: object) -> Sequence[Row]:
    state = _mapping(budget)
    spent, reserved = _mapping(state.get("spent")), _mapping(state.get("reserved"))
    return [
        (
            cell(provider),
            cell(currency),
            cell(amount),
            cell(spent.get(currency, 0)),
            cell(reserved.get(currency, 0)),
            when(state.get("resets_at")),
        )
        for currency, amount in _mapping(state.get("budget")).items()
    ]


def _audit(audit: object) -> Sequence[Row]:
    local = _mapping(audit)
    remote = _mapping(local.get("remote"))
    rows: list[Row] = []
    if local:
        state = cell(local.get("problem") or "ok")
        rows.append(("local database", state, cell(local.get("written")), "-", "-", cell(local.get("dropped"))))
    for where, lane in (("Supabase", remote), ("Supabase, message copies", _mapping(remote.get("copies")))):
        if lane:
            state = cell(lane.get("state"))
            if error := lane.get("last_error"):
                state = f"{state}: {cell(error)}"
            rows.append((where, state, *(cell(lane.get(key)) for key in ("sent", "backlog", "refused", "dropped"))))
    return rows


def _totals_title(status: Mapping[str, Any]) -> str:
    since = _mapping(status.get("totals")).get("since")
    return "Totals" if since is None else f"Totals since {when(since)}"


def _totals(status: Mapping[str, Any]) -> Sequence[Row]:
    totals = _mapping(status.get("totals"))
    rows = [("all calls", _mapping(totals.get("all")))]
    rows += [(f"tool {name}", _mapping(sums)) for name, sums in _mapping(totals.get("by_tool")).items()]
    rows += [(f"model {cell(sums.get('model'))}", sums) for sums in map(_mapping, _sequence(totals.get("by_model")))]
    keys = ("calls", "errors", "input_tokens", "output_tokens")
    return [(group, *(cell(sums.get(key)) for key in keys), _cost(sums.get("cost"))) for group, sums in rows if sums]


def _cost(cost: object) -> str:
    """``0.0123 USD + 1.5 CNY``; the daemon reports totals by currency."""
    return " + ".join(f"{cell(amount)} {currency}" for currency, amount in _mapping(cost).items()) or "-"


def _paused(paused: object) -> Sequence[Row]:
    """The calls that wait for a person; ``toold agents decide ID`` shows what they ask."""
    return [
        (
            cell(call.get("id")),
            cell(call.get("tool")),
            cell(call.get("principal")),
            duration(call["age_s"]) if isinstance(call.get("age_s"), int | float) else "-",
            when(call.get("expires_at")),
            _requests(call.get("requests")),
        )
        for call in map(_mapping, _sequence(paused))
    ]


def _requests(requests: object) -> str:
    """``t2.0 approve create_ticket``; at most three requests."""
    shown = [
        " ".join(
            cell(part) for part in (request.get("id"), request.get("kind"), request.get("tool")) if part is not None
        )
        for request in map(_mapping, _sequence(requests))
    ]
    more = [f"{len(shown) - _SHOWN_REQUESTS} more"] if len(shown) > _SHOWN_REQUESTS else []
    return ", ".join([*shown[:_SHOWN_REQUESTS], *more]) or "-"


def _recent(recent: object) -> Sequence[Row]:
    """The recent calls; today's show the time without the date."""
    today = time.strftime("%Y-%m-%d ")
    return [
        (
            when(call.get("started_at")).removeprefix(today),
            cell(call.get("tool")),
            cell(call.get("outcome")),
            f"{call['latency_ms']:.0f} ms" if isinstance(call.get("latency_ms"), int | float) else "-",
            cell(call.get("model")),
            cell(call.get("principal")),
            cell(call.get("session")),
        )
        for call in map(_mapping, _sequence(recent))
    ]


def when(started_at: object) -> str:
    """Local time; the daemon reports Unix seconds."""
    if isinstance(started_at, int | float):
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(started_at))
    return cell(started_at)


def duration(seconds: float) -> str:
    """``42 s``, ``5 min``, ``3 h 20 min``, ``12 d 3 h``."""
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    if minutes < 1:
        return f"{seconds:.0f} s"
    if hours < 1:
        return f"{minutes} min"
    if days < 1:
        return f"{hours} h {minutes % 60} min"
    return f"{days} d {hours % 24} h"


def cell(value: object) -> str:
    """Any JSON value on one line; ``-`` for null."""
    match value:
        case None:
            return "-"
        case str():
            return " ".join(value.split())
        case float():
            return f"{value:g}"
        case int():
            return str(value)
        case _:
            return msgspec.json.encode(value).decode()


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else []
