"""Tables on standard output: ruled and coloured on a terminal, one plain line a row elsewhere, so that grep works."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.text import Text

Row = Sequence[str]


def print_table(headers: Row, rows: Sequence[Row], *, title: str = "", gives_way: str = "") -> None:
    """Print a table; cells are single lines, of what is ``printable``. Without a title none is shown.

    Where a terminal is too narrow, the column ``gives_way`` is cut off; in a table without it, long cells are folded.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_rich(headers, rows, title, gives_way)
    else:
        if title:
            click.echo(title)
        for line in plain_table(headers, rows):
            click.echo(line)


def printable(text: str, *, keep: str = "") -> str:
    """Others' words without what a terminal would obey, such as colours and titles; ``keep`` stays."""
    return "".join(char if char.isprintable() or char in keep else " " for char in text)


def plain_table(headers: Row, rows: Sequence[Row]) -> list[str]:
    """Columns padded to their widest cell, two spaces apart; no spaces at a line's end."""
    table = [headers, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(headers))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def _print_rich(headers: Row, rows: Sequence[Row], title: str, gives_way: str) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", title_style="bold", pad_edge=False)
    for header in headers:
        if gives_way in headers and header != gives_way:
            table.add_column(header, overflow="ellipsis", no_wrap=True)  # rich narrows the others first
        else:
            table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(cell, cut=header == gives_way) for cell, header in zip(row, headers, strict=True)))
    Console().print(table)


def _cell(text: str, *, cut: bool) -> "Text":
    """A cell whose brackets are no markup."""
    from rich.text import Text

    return Text(text, no_wrap=True, overflow="ellipsis") if cut else Text(text)
