"""Tables on standard output: formatted on a terminal, one plain line per row elsewhere, so that grep works."""

import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..protocol.terminal_text import terminal_safe
from .terminal_output import say

if TYPE_CHECKING:
    from rich.text import Text

Row = Sequence[str]


def print_table(
    headers: Row, rows: Sequence[Row], *, title: str = "", shrink: str = "", cut_plain: bool = False
) -> None:
    """Print a table. Cells become single lines, safe for the terminal.

    If the terminal is too narrow, the column ``shrink`` is truncated; without such a column, long cells wrap. If stdout
    is not a terminal, lines are whole, or with ``cut_plain`` truncated at COLUMNS (default 80).
    """
    rows = [[terminal_safe(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_rich(headers, rows, title, shrink)
    else:
        if title:
            say(title)
        width = shutil.get_terminal_size().columns if cut_plain else None
        for line in plain_table(headers, rows):
            say(line if width is None or len(line) <= width else f"{line[: width - 1]}…")


def plain_table(headers: Row, rows: Sequence[Row]) -> list[str]:
    """Lines with columns padded to their widest cell, two spaces apart, without trailing spaces."""
    table = [headers, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(headers))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def _print_rich(headers: Row, rows: Sequence[Row], title: str, shrink: str) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", title_style="bold", pad_edge=False)
    for header in headers:
        if shrink in headers and header != shrink:
            table.add_column(header, overflow="ellipsis", no_wrap=True)  # rich shrinks the other columns first
        else:
            table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(cell, cut=header == shrink) for cell, header in zip(row, headers, strict=True)))
    Console().print(table)


def _cell(text: str, *, cut: bool) -> "Text":
    """A cell whose brackets are not parsed as markup."""
    from rich.text import Text

    return Text(text, no_wrap=True, overflow="ellipsis") if cut else Text(text)
