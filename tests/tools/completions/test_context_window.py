"""The selection of files and turns that fit into a context window."""

import datetime as dt
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.providers import AttachedFile, Model
from toold.tools import ModelQuestion, Turn
from toold.tools.completions.context_window import (
    PromptSizes,
    answer_tokens,
    fit,
    fit_to,
    max_prompt_tokens,
    prompt_sizes,
)
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
    """The included files and turns, and the reported reasons for the omitted ones."""
    whole = question(len(files), len(turns))
    part, omitted = fit(whole, PromptSizes(asked, tuple(files), tuple(turns)), tokens)
    return (
        " ".join(file.name for file in part.files),
        " ".join(turn.text for turn in part.history),
        [f"{item.what}: {item.reason}" for item in omitted],
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
        # The newest turn fits into the reserved quarter, and the files use the rest.
        ([40, 40], [100, 20], 110, ("f0", "t1", [f"f1: its 40 tokens {NO_FIT}",
                                                 f"the oldest turn of the conversation: 100 more tokens {NO_FIT}"])),
        ([75], [100], 110, ("f0", "", [f"the oldest turn of the conversation: 100 more tokens {NO_FIT}"])),
    ],
)  # fmt: skip
def test_files_and_turns_are_selected_by_rule(files: list[int], turns: list[int], tokens: int, goes: object) -> None:
    """Files are included in order, each completely or not at all. The newest turns come first, with
    a reserved quarter.
    """
    assert fitted(10, files, turns, tokens) == goes


few = st.lists(st.integers(1, 60), max_size=8)


@given(st.integers(0, 50), few, few, st.integers(0, 300))
def test_selection_fits_and_omissions_are_reported(asked: int, files: list[int], turns: list[int], tokens: int) -> None:
    """The selection fits, all omissions are reported, and the included turns are contiguous up to the newest."""
    whole = question(len(files), len(turns))
    size = PromptSizes(asked, tuple(files), tuple(turns))
    part, omitted = fit(whole, size, tokens)
    by_name = {f"f{n}": tokens for n, tokens in enumerate(files)}
    used = sum(by_name[file.name] for file in part.files) + sum(turns[len(turns) - len(part.history) :])
    assert asked + used <= max(tokens, asked)
    assert part.history == whole.history[len(turns) - len(part.history) :]
    missing = {file.name for file in whole.files} - {file.name for file in part.files}
    assert missing == {item.what for item in omitted if item.what.startswith("f")}
    assert (len(part.history) < len(turns)) == any("oldest" in item.what for item in omitted)


def test_prompt_sizes_count_all_parts() -> None:
    """System message, question, images, files and turns are counted by the estimate."""
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
def test_tokens_are_reserved_for_the_answer(model: Model, fields: dict[str, Any], tokens: int) -> None:
    """The reserve is ``max_tokens`` or a typical answer. In a small window it is smaller."""
    request = question(**fields)
    assert model.context_window is not None
    assert answer_tokens(model, request) == tokens
    assert max_prompt_tokens(model, request) == int((model.context_window - tokens) / 1.3)


MODEL = known("m", "kimi", 10_000)


@pytest.mark.parametrize(
    ("size", "files"),
    [
        (PromptSizes(9_990, (), ()), 0),
        (PromptSizes(10_001, (), ()), None),
        (PromptSizes(10, (9_000,), ()), 1),  # no reserve is left, but the question is about this file
        (PromptSizes(10, (9_991, 9_992), ()), None),
        (PromptSizes(10, (9_991, 100), ()), 1),
        (PromptSizes(10, (5_000, 4_000), ()), 1),
    ],
)
def test_question_is_not_sent_without_any_of_its_files(size: PromptSizes, files: int | None) -> None:
    """If none of the files fits, the question is not sent, because the answer would be useless."""
    part = fit_to(MODEL, question(len(size.files), len(size.turns)), size)
    assert (None if part is None else len(part[0].files)) == files
