"""The settings of prompts."""

from pathlib import Path
from typing import Any

import pytest
from toold.prompts import PromptSettingsError, anchored_prompts, read_prompts

URL = "https://phoenix.example"


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"order": ["phoenix", "phoenix"]}, "order must name each source once"),
        (
            {"order": ["inline", "fenix"]},
            "litellm, registry, file; did you mean 'phoenix'?",
        ),
        ({"order": []}, "order must have one entry or more"),
        ({"fenix": {}}, "fenix is not a setting; did you mean 'phoenix'?"),
        ({"phoenix": {}}, "phoenix.url is required"),
        ({"phoenix": {"url": "ftp://x"}}, "phoenix.url must be a URL that starts with http:// or https://"),
        ({"phoenix": {"url": "https://a:secret@x"}}, "phoenix.url must not contain a password; use auth"),
        (
            {"litellm": {"url": URL, "tag": "x"}},
            "litellm.tag is not a setting; settings: url, key",
        ),
        ({"phoenix": {"url": URL, "key": "secret"}}, "phoenix.key must be { env = … } or { file = … }, never the key"),
        ({"phoenix": {"url": URL, "key": {"value": "secret"}}}, "key has env or file, never the key itself"),
        ({"phoenix": {"url": URL, "key": {}}}, "phoenix.key must name the location of the secret: either env or file"),
        ({"phoenix": {"url": URL, "timeout_s": 0}}, "phoenix.timeout_s must be more than 0"),
        ("phoenix", "must be a table of toold.toml"),
    ],
)
def test_invalid_settings(table: Any, problem: str) -> None:
    """The error names the key and what is allowed, and never quotes a value that may be secret."""
    with pytest.raises(PromptSettingsError) as raised:
        read_prompts(table)
    assert problem in str(raised.value)
    assert "secret@" not in str(raised.value)


def test_paths_are_relative_to_the_settings_file() -> None:
    """The folder, the default file and the files of keys; the folder has a default."""
    table = {"default_file": "d.txt", "phoenix": {"url": URL, "key": {"file": "p.key"}}}
    settings = read_prompts(anchored_prompts(table, Path("/etc/toold")))
    assert (settings.folder, settings.default_file) == (Path("/etc/toold/prompts"), Path("/etc/toold/d.txt"))
    assert list(settings.key_files) == [Path("/etc/toold/p.key")]
    assert str(settings) == "inline, phoenix, file"
