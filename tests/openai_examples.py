"""The examples of docs/openai.md, with the address and the token of a test's daemon."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs/openai.md"


def example(language: str, contains: str, url: str, token: str) -> str:
    """The code block of this language that contains a text."""
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (block,) = [block for block in blocks if contains in block]
    return str(block.replace("http://127.0.0.1:8080", url).replace("TOKEN", token))
