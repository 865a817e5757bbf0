"""The owners of vendor files."""

from typing import NamedTuple


class VendorFileUploaded(NamedTuple):
    """A principal uploaded a file."""

    provider: str
    file_id: str
    principal: str
    at: float
    """Unix time in seconds."""


class VendorFileDeleted(NamedTuple):
    """A file was deleted at its vendor."""

    provider: str
    file_id: str
