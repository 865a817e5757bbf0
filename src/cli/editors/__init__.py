"""The editors whose configuration files list MCP servers: where the files are, and how their entries are changed.

Used by ``toold install`` and ``toold doctor``. Only the entry for toold changes; everything else in the file, comments
included, stays unchanged, or the file is refused.
"""

from .editor_checks import check_editors
from .editor_table import EDITORS, Editor, EditorFile, locate
from .server_entry import RefusedFileError, ServerEntry

__all__ = ["EDITORS", "Editor", "EditorFile", "RefusedFileError", "ServerEntry", "check_editors", "locate"]
