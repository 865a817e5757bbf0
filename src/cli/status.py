"""``toold status``: what the daemon does now and did last, by its ``status`` tool."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec

from .connecting import connected, run
from .tables import Row, print_table


@click.command(short_help="Show what the daemon does and did.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--recent", type=click.IntRange(0, 100), default=10, show_default=True, help="How many last calls to show."
)
def command(as_json: bool, recent: int) -> None:
    """Show version, uptime, connections, limits, providers, sums and the last calls of the running daemon."""
    url, status = run(_ask(recent))
    if as_json:
        click.echo(msgspec.json.encode(status))
        return
    click.echo(headline(url, status))
    for title, headers, rows in sections(status):
        if rows:
            click.echo()
            print_table(headers, rows, title=title)


async def _ask(recent: int) -> tuple[str, dict[str, Any]]:
    async with connected() as client:
        result = await client.call("status", {"recent": recent})
    return client.url, result.structured if isinstance(result.structured, dict) else {}


def headline(url: str, status: Mapping[str, Any]) -> str:
    """One line: which daemon, since when, with how many connections."""
    parts = [f"toold {status.get('version', '?')} at {url}"]
    if "pid" in status:
        parts.append(f"pid {status['pid']}")
    if "uptime_s" in status:
        parts.append(f"up {duration(status['uptime_s'])}")
    if "connections" in status:
        parts.append(f"{cell(status['connections'])} connections")
    if status.get("simulated"):
        parts.append("simulated")
    return ", ".join(parts)


Section = tuple[str, Row, Sequence[Row]]


def sections(status: Mapping[str, Any]) -> list[Section]:
    """Title, headers and rows of each table. What a daemon of another version leaves out is empty here."""
    return [
        ("Limits", ("LIMIT", "IN USE", "OF", "WAITING"), _limits(status.get("limits"))),
        ("Providers", ("PROVIDER", "STATE", "ROAD"), _providers(status.get("providers"))),
        ("Totals", ("WHAT", "VALUE"), [(key, cell(value)) for key, value in _mapping(status.get("totals")).items()]),
        ("Last calls", ("WHEN", "TOOL", "OUTCOME", "LATENCY", "MODEL", "SESSION"), _recent(status.get("recent"))),
    ]


def _limits(limits: object) -> Sequence[Row]:
    rows = []
    for name, value in _mapping(limits).items():
        group = _mapping(value)
        nested = {name: group} if "limit" in group else {f"{name}/{key}": _mapping(part) for key, part in group.items()}
        rows += [
            (label, cell(part.get("in_use")), cell(part.get("limit")), cell(part.get("waiting")))
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
        rows.append((cell(provider.get("name")), state, cell(provider.get("road"))))
    return rows


def _recent(recent: object) -> Sequence[Row]:
    return [
        (
            _when(call.get("started_at")),
            cell(call.get("tool")),
            cell(call.get("outcome")),
            f"{call['latency_ms']:.0f} ms" if isinstance(call.get("latency_ms"), int | float) else "-",
            cell(call.get("model")),
            cell(call.get("session_label") or call.get("session_id")),
        )
        for call in map(_mapping, _sequence(recent))
    ]


def _when(started_at: object) -> str:
    """Local time; the daemon gives Unix seconds."""
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
    """Any JSON value on one line; ``-`` where there is none."""
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
