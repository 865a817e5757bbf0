"""Checks the page of a tab with axe-core, which `make test-browser` and CI install."""

from pathlib import Path
from typing import Any, Final

import pytest
from tests.browser.chromium import Page

VIEWS: Final = ((1280, False), (420, True))
"""Widths in CSS pixels, and whether the colours are dark. No colour depends on the width."""
FINISH_TRANSITIONS: Final = "document.getAnimations().filter(a => a instanceof CSSTransition).forEach(a => a.finish())"
"""Of colours, when the preferred ones change."""
_AXE: Final = Path(__file__).parents[2] / ".venv/axe/node_modules/axe-core/axe.min.js"


async def violations(page: Page) -> dict[str, Any]:
    """The rules that the open page breaks in each of ``VIEWS``, with the elements; empty if it breaks none."""
    if not _AXE.exists():
        pytest.skip("axe-core is not installed; `make test-browser` installs it")
    await page.value(_AXE.read_text() + "; undefined")
    broken = {}
    for width, dark in VIEWS:
        await page.show(width=width, dark=dark)
        found = await page.value(
            f"({FINISH_TRANSITIONS}, axe.run()).then(all => all.violations"
            ".map(v => [v.id, v.nodes.map(n => n.html.slice(0, 200))]))"
        )
        if found:
            broken[f"{width} px, {'dark' if dark else 'light'}"] = found
    return broken
