"""The version of toold, in one place."""

__version__ = "0.1.0"


def install_extra(extra: str) -> str:
    """How to install the packages of an extra. Names the checkout, since no package index has toold."""
    return f"run pip install '.[{extra}]' in toold's checkout"
