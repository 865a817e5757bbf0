"""The editors that start MCP servers by a file of theirs: where it is, what stands in it, how it is changed.

Who calls it: ``toold install`` and ``toold doctor``. A file is changed in the one place that is meant; all else of it,
comments included, stays as it is, or the file is refused.
"""

from .editor_checks import check_editors
from .editor_errors import RefusedFileError
from .editor_table import EDITORS, Editor, EditorFile, place_of
from .server_entry import ServerEntry

__all__ = ["EDITORS", "Editor", "EditorFile", "RefusedFileError", "ServerEntry", "check_editors", "place_of"]
