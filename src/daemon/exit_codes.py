"""The exit codes of ``toold serve``."""

from typing import Final

EXIT_OK: Final = 0
EXIT_CANNOT_START: Final = 1
EXIT_WRONG_SETTING: Final = 2
EXIT_FENCED: Final = 70
"""Another node of the cluster has declared this process dead."""
