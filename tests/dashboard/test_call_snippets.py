"""Calls as texts to copy."""

import json
import shlex

import pytest
from toold.cli.call_arguments import bind, parse_word
from toold.dashboard import call_snippets

ARGUMENTS = {"text": "it's $HOME `x`\nü", "at": "@file", "flag": True, "list": [1, {"a": None}], "odd key": "v=1"}
ADDRESS = "http://127.0.0.1:8080"


def snippets() -> dict[str, str]:
    return dict(call_snippets("echo", ARGUMENTS, ADDRESS))


def test_the_command_makes_the_same_call() -> None:
    """The command line reads the words back as the same arguments."""
    words = shlex.split(snippets()["Command line"].replace("\\\n", " "))
    assert words[:3] == ["toold", "call", "echo"]
    assert bind("echo", {}, [parse_word(word) for word in words[3:]]) == ARGUMENTS


def test_the_program_makes_the_same_call() -> None:
    """The program is Python, and has the arguments."""
    text = snippets()["Python"]
    compile(text, "snippet", "exec")
    shown = text.partition("arguments = ")[2].partition("        success,")[0]
    assert eval(shown) == ARGUMENTS  # noqa: S307 - our own text


@pytest.mark.parametrize("title", ["JSON-RPC", "REST"])
def test_the_requests_have_the_same_arguments(title: str) -> None:
    """The shell passes the body on unchanged."""
    words = shlex.split(snippets()[title].replace("\\\n", " "))
    body = json.loads(words[words.index("-d") + 1])
    assert (body["params"]["arguments"] if title == "JSON-RPC" else body) == ARGUMENTS
    assert words[1].startswith(ADDRESS)


def test_no_line_is_endless() -> None:
    """Arguments that no command line takes are not shown."""
    assert all(len(text) < 100 for _, text in call_snippets("echo", {"text": "x" * 50_000}, ADDRESS))
