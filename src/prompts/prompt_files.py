"""Prompts in files: a folder with one file per prompt or role. Blocks."""

import re
from pathlib import Path
from typing import Final

from .front_matter import PromptFormatError
from .prompt_variables import MAX_PROMPT_CHARS
from .server_answers import StoredPrompt, stored_text

SUFFIXES: Final = (".txt", ".md", ".prompt")
DEFAULT_NAME: Final = "default"
_MAX_BYTES: Final = 4 * MAX_PROMPT_CHARS
"""The maximum size of a file. A character has at most four bytes."""
PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
"""The format of names. They come from the configurations of agents, and must not lead out of the folder."""


def prompt_in_folder(folder: Path, names: tuple[str, ...]) -> StoredPrompt | None:
    """Return the prompt of the first of these names that has a file in the folder, with one of ``SUFFIXES``.

    Raises:
        PromptFormatError: the file cannot be used.
    """
    for name in names:
        if not PLAIN_NAME.fullmatch(name):
            continue
        for suffix in SUFFIXES:
            prompt = prompt_in_file(folder / f"{name}{suffix}")
            if prompt is not None:
                return prompt
    return None


def prompt_in_file(path: Path) -> StoredPrompt | None:
    """Return the prompt in a file; None if there is no such file.

    Raises:
        PromptFormatError: the file cannot be used; the message names it.
    """
    try:
        if not path.is_file():  # a pipe might never end
            return None
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        return stored_text(content.decode(), is_dotprompt=path.suffix == ".prompt")
    except OSError as error:
        raise PromptFormatError(f"{path} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise PromptFormatError(f"{path} is not UTF-8 text") from None
    except PromptFormatError as error:
        raise PromptFormatError(f"{path}: {error}") from None
