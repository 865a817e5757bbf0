"""toold, the tool daemon."""

from .version import __version__

__all__ = ["__version__"]
