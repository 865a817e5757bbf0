"""Renders the pages. All values are escaped: names, arguments, results and errors may contain untrusted text."""

from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from . import page_formats
from .page_assets import Assets

NAVIGATION: Final = (
    ("now", "Now"),
    ("calls", "Calls"),
    ("tools", "Tools"),
    ("sources", "Sources"),
    ("cost", "Cost"),
    ("agents", "Agents"),
    ("models", "Models"),
    ("sessions", "Sessions"),
    ("health", "Health"),
    ("settings", "Settings"),
)
"""The pages in the order of the navigation: the path below ``/ui/`` and the title."""
FOR_OPERATORS: Final = frozenset({"sources", "sessions", "health", "settings"})
"""The paths of the pages that only operators see."""


def navigation(operator: bool) -> list[tuple[str, str]]:
    """The pages that a viewer sees."""
    return [page for page in NAVIGATION if operator or page[0] not in FOR_OPERATORS]


class Pages:
    """The templates."""

    def __init__(self, assets: Assets, *, version: str) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(Path(__file__).parent / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= page_formats.FILTERS
        self._environment.globals |= {
            "asset": lambda name: f"/ui/assets/{assets.url_name(name)}",
            "navigation": navigation,
            "version": version,
        }

    def render(self, template: str, **values: Any) -> str:
        """Returns the HTML of a template."""
        return self._environment.get_template(f"{template}.html").render(values)
