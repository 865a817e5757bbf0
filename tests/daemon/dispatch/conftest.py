"""Fixtures of the dispatch tests: the harness, its tools, and the check that no call is answered twice."""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from toold.tools import Tool

from .dispatch_harness import DispatchHarness
from .fake_port import FakePort
from .scripted_tools import Function, make_tool


@pytest.fixture(autouse=True)
def one_answer_per_call() -> Iterator[None]:
    """No test may answer a call twice. Checked afterwards, since a call's task does not raise in the test."""
    FakePort.answered.clear()
    yield
    twice = [running.key for running, times in Counter(FakePort.answered).items() if times > 1]
    assert not twice, "a second terminal answer"


@pytest.fixture(scope="session")
def make_harness() -> type[DispatchHarness]:
    """The harness class: each test creates its own in its loop."""
    return DispatchHarness


@pytest.fixture(scope="session", name="make_tool")
def make_tool_fixture() -> Callable[..., Tool]:
    """``make_tool``."""
    return make_tool


@pytest.fixture(scope="session")
def make_orchestration() -> Callable[..., Tool]:
    """``make_tool`` for orchestration tools."""

    def make(function: Function, name: str = "compose") -> Tool:
        return make_tool(name, function, read_only=False, open_world=True, orchestration=True)

    return make
