"""The version of toold, in one place."""

__version__ = "0.1.0"


def install_extra(extra: str) -> str:
    """A hint for installing the packages of an extra. It names the checkout, since toold is not in a package index."""
    return f"run pip install '.[{extra}]' in toold's checkout"
