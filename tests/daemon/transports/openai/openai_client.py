"""The ``openai`` SDK's clients of a daemon, and what they ask."""

from collections.abc import Callable
from typing import Any

from openai import AsyncOpenAI

MODEL = "glm-4.6"

Connect = Callable[..., AsyncOpenAI]
ConnectTo = Callable[..., AsyncOpenAI]


def question(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]
