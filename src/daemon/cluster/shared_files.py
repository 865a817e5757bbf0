"""The files of a state directory that must be the same on all nodes of a cluster."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from ...protocol.daemon_address import TOKEN_FILE
from ..access import TOKENS_FILE
from ..config.settings import Settings
from ..persistence.key_files import KEY_FILES
from ..persistence.state_directory import AUDIT_KEY_FILE

_FILES: Final = (TOKEN_FILE, TOKENS_FILE, AUDIT_KEY_FILE, *KEY_FILES)


def shared_files(settings: Settings) -> Mapping[str, bytes]:
    """Returns the content of these files, without the token file if a setting contains the token. Missing files are
    omitted.
    """
    names = [name for name in _FILES if name != TOKEN_FILE or (settings.auth and settings.token is None)]
    content: dict[str, bytes] = {}
    for name in names:
        with suppress(OSError):
            content[name] = (settings.state_dir / name).read_bytes()
    return content
