"""Settings loaded from flags and variables, and the message if they are invalid."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from toold.daemon.config.setting_sources import SettingsError, load_settings
from toold.daemon.config.settings import Settings


def load(flags: Mapping[str, object] | None = None, /, *, cwd: Path, **env: str) -> Settings:
    return load_settings(flags or {}, env=env, cwd=cwd)


def refusal(flags: Mapping[str, object] | None = None, /, *, cwd: Path, **env: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(flags or {}, env=env, cwd=cwd)
    message = str(caught.value)
    assert "\n" not in message
    return message
