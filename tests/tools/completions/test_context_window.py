"""What goes into a window, and what is left out: the rule, in any mixture of files and turns."""

import datetime as dt
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.providers import AttachedFile, Model
from toold.tools import Turn
from toold.tools.completions.context_window import (
    PromptSizes,
    answer_tokens,
    fit,
    fit_to,
    max_prompt_tokens,
    prompt_sizes,
)
from toold.tools.completions.model_question import ModelQuestion
from toold.tools.completions.prompt_tokens import IMAGE_TOKENS

known = partial(Model, source="https://example.com/models", date=dt.date(2026, 1, 1))


def question(files: int = 0, turns: int = 0, **fields: Any) -> ModelQuestion:
    return ModelQuestion(
        "Why?",
        files=tuple(AttachedFile(f"f{n}", "") for n in range(files)),
        history=tuple(Turn("user", f"t{n}") for n in range(turns)),
        **fields,
    )


def fitted(asked: int, files: list[int], turns: list[int], tokens: int) -> tuple[str, str, list[str]]:
    """Which files and turns go, and what is told of the others."""
    whole = question(len(files), len(turns))
    part, omitted = fit(whole, PromptSizes(asked, tuple(files), tuple(turns)), tokens)
    return (
        " ".join(file.name for file in part.files),
        " ".join(turn.text for turn in part.history),
        [f"{one.what}: {one.reason}" for one in omitted],
    )


NO_FIT = "do not fit into the model's context window"


@pytest.mark.parametrize(
    ("files", "turns", "tokens", "goes"),
    [
        ([50, 50], [10, 10], 130, ("f0 f1", "t0 t1", [])),
        ([50, 50], [10, 10], 119, ("f0", "t0 t1", [f"f1: its 50 tokens {NO_FIT}"])),
        ([50, 50, 20], [], 80, ("f0 f2", "", [f"f1: its 50 tokens {NO_FIT}"])),
        ([], [50, 50, 50], 115, ("", "t1 t2", [f"the oldest turn of the conversation: 50 more tokens {NO_FIT}"])),
        ([], [5, 50, 50], 60, ("", "t2", [f"the oldest 2 turns of the conversation: 55 more tokens {NO_FIT}"])),
        # The newest turn is in its quarter, and the files take the rest.
        ([40, 40], [100, 20], 110, ("f0", "t1", [f"f1: its 40 tokens {NO_FIT}",
                                                 f"the oldest turn of the conversation: 100 more tokens {NO_FIT}"])),
        ([75], [100], 110, ("f0", "", [f"the oldest turn of the conversation: 100 more tokens {NO_FIT}"])),
    ],
)  # fmt: skip
def test_the_rule_decides_what_goes(files: list[int], turns: list[int], tokens: int, goes: object) -> None:
    """Files in their order, each whole or not at all; the newest turns first, with a quarter to themselves."""
    assert fitted(10, files, turns, tokens) == goes


few = st.lists(st.integers(1, 60), max_size=8)


@given(st.integers(0, 50), few, few, st.integers(0, 300))
def test_nothing_is_lost_or_overfull(asked: int, files: list[int], turns: list[int], tokens: int) -> None:
    """What goes fits; what does not go is named; turns go without a hole, up to the newest."""
    whole = question(len(files), len(turns))
    size = PromptSizes(asked, tuple(files), tuple(turns))
    part, omitted = fit(whole, size, tokens)
    by_name = {f"f{n}": tokens for n, tokens in enumerate(files)}
    used = sum(by_name[file.name] for file in part.files) + sum(turns[len(turns) - len(part.history) :])
    assert asked + used <= max(tokens, asked)
    assert part.history == whole.history[len(turns) - len(part.history) :]
    missing = {file.name for file in whole.files} - {file.name for file in part.files}
    assert missing == {one.what for one in omitted if one.what.startswith("f")}
    assert (len(part.history) < len(turns)) == any("oldest" in one.what for one in omitted)


def test_sizes_count_everything() -> None:
    """Instructions, question, images, files and turns, each by the estimate."""
    text = "word " * 100
    files, history = (AttachedFile("a", text),), (Turn("user", text),)
    size = prompt_sizes(
        ModelQuestion(text, system=text, files=files, images=("https://example.com/",), history=history)
    )
    assert size.base == 200 + IMAGE_TOKENS
    assert size.total == size.base + size.files[0] + size.turns[0]
    assert 100 < size.files[0] < 120
    assert 100 < size.turns[0] < 120


@pytest.mark.parametrize(
    ("model", "fields", "tokens"),
    [
        (known("m", "kimi", 100_000), {}, 4_096),
        (known("m", "kimi", 100_000), {"max_tokens": 9}, 9),
        (known("m", "kimi", 8_000), {}, 2_000),
        (known("m", "kimi", 100_000, max_output=1_000), {}, 1_000),
        (known("m", "kimi", 100_000, thinking="always"), {}, 16_384),
        (known("m", "kimi", 100_000, thinking="switch"), {"thinking": False}, 4_096),
        (known("m", "kimi", 100_000, thinking="switch"), {"thinking": "minimal"}, 4_096),
    ],
)
def test_room_is_kept_for_the_answer(model: Model, fields: dict[str, Any], tokens: int) -> None:
    """As much as it may have, or usually has; a small window is not used up by it."""
    asked = question(**fields)
    assert answer_tokens(model, asked) == tokens
    assert max_prompt_tokens(model, asked) == int((model.context_window - tokens) / 1.3)


MODEL = known("m", "kimi", 10_000)


@pytest.mark.parametrize(
    ("size", "files"),
    [
        (PromptSizes(9_990, (), ()), 0),
        (PromptSizes(10_001, (), ()), None),
        (PromptSizes(10, (9_000,), ()), 1),  # no room to spare, but it is what the question is about
        (PromptSizes(10, (9_991, 9_992), ()), None),
        (PromptSizes(10, (9_991, 100), ()), 1),
        (PromptSizes(10, (5_000, 4_000), ()), 1),
    ],
)
def test_a_question_goes_with_one_of_its_files_or_not_at_all(size: PromptSizes, files: int | None) -> None:
    """An answer without any of the files would be worth nothing, and is not paid for."""
    part = fit_to(MODEL, question(len(size.files), len(size.turns)), size)
    assert (None if part is None else len(part[0].files)) == files
