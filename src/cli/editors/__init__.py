"""The editors that start MCP servers by a file of theirs: where it is, what stands in it, how it is changed.

Who calls it: ``toold install`` and ``toold doctor``. A file is changed in the one place that is meant; all else of it,
comments included, stays as it is, or the file is refused.
"""

from .checks import check_editors
from .editor import EDITORS, Editor, Place, place_of
from .entry import Entry
from .refusal import RefusedFileError

__all__ = ["EDITORS", "Editor", "Entry", "Place", "RefusedFileError", "check_editors", "place_of"]
