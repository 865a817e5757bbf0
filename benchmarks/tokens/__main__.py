"""Counts and prints: ``python -m benchmarks.tokens``, after ``make bench-tokens`` has installed the tokenizer."""

import asyncio
import sys
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from toold.tools import Presentation, load_registry

from .counting import ENCODING, count_tokens
from .synthetic import SIZES, synthetic_tools
from .task import AIMS, WAYS, definition, texts


@dataclass(frozen=True, slots=True)
class Cost:
    """In tokens; the texts of ``task.Texts``."""

    listing: int
    use: int

    @property
    def whole(self) -> int:
        return self.listing + self.use


async def _cost(way: Presentation, count: int) -> Cost:
    said = await texts(way, count)
    return Cost(sum(count_tokens(said.listing)), sum(count_tokens(said.use)))


def main() -> int:
    """Print the table, and whether the aims are met."""
    console = Console()
    try:
        costs = {(count, way): asyncio.run(_cost(way, count)) for count in SIZES for way in WAYS}
        own = count_tokens([definition(tool.info) for tool in load_registry().tools])
        made = count_tokens([definition(tool.info) for tool in synthetic_tools(max(SIZES))])
    except RuntimeError as error:
        console.print(str(error), markup=False, soft_wrap=True)
        return 1
    table = Table(box=SIMPLE_HEAD)
    for title in ("tools", "presentation", "listing", "find and use three", "whole", "saved"):
        table.add_column(title, justify="left" if title == "presentation" else "right")
    for (count, way), cost in costs.items():
        saved = 1 - cost.whole / costs[count, "classic"].whole
        aim = f" (aim {AIMS[count]:.0%})" if way == "code" and count in AIMS else ""
        shown = "" if way == "classic" else f"{saved:.1%}{aim}"
        table.add_row(str(count), way, f"{cost.listing:,}", f"{cost.use:,}", f"{cost.whole:,}", shown)
    console.print(table)
    console.print(
        f"Tokens by {ENCODING}. The tools are synthetic, {sum(made) / len(made):.0f} tokens each in the listing; "
        f"the daemon's own {len(own)} take {sum(own) / len(own):.0f} each.",
        soft_wrap=True,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
