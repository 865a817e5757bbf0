"""Tables on standard output: ruled and coloured on a terminal, one plain line a row elsewhere, so that grep works."""

import sys
from collections.abc import Sequence

import click

Row = Sequence[str]


def print_table(headers: Row, rows: Sequence[Row], *, title: str = "") -> None:
    """Print a table; cells are single lines. Without a title none is shown."""
    if sys.stdout.isatty():
        _print_rich(headers, rows, title)
    else:
        if title:
            click.echo(title)
        for line in plain_table(headers, rows):
            click.echo(line)


def plain_table(headers: Row, rows: Sequence[Row]) -> list[str]:
    """Columns padded to their widest cell, two spaces apart; no spaces at a line's end."""
    table = [headers, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(headers))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def _print_rich(headers: Row, rows: Sequence[Row], title: str) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", title_style="bold", pad_edge=False)
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)
