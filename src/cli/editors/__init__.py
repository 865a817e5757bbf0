"""The editors whose configuration files list MCP servers: where the files are, and how their entries are changed.

Used by ``toold install`` and ``toold doctor``. Only the entry for toold changes; everything else in the file, comments
included, stays unchanged, or the file is refused.
"""

from .editor_checks import check_editors
from .editor_table import EDITORS, Editor, EditorFile, locate
from .jsonc_file import parse as parse_jsonc
from .server_entry import RefusedFileError, ServerEntry
from .server_import import ImportedServer, SkippedServer, import_server, servers_in, source_name
from .toml_file import change as change_table
from .toml_file import parse as parse_toml
from .toml_file import set_key

__all__ = [
    "EDITORS",
    "Editor",
    "EditorFile",
    "ImportedServer",
    "RefusedFileError",
    "ServerEntry",
    "SkippedServer",
    "change_table",
    "check_editors",
    "import_server",
    "locate",
    "parse_jsonc",
    "parse_toml",
    "servers_in",
    "set_key",
    "source_name",
]
