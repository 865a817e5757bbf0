"""The display of a call on a terminal and elsewhere."""

import json
import sys
from dataclasses import replace

import pytest
from toold.cli.call_output import CallDisplay, footer, json_answer, print_result, progress_line, stderr_lines
from toold.client import CallResult
from toold.protocol.error_codes import CallTimeoutError
from toold.protocol.tool_call import Cost, Metadata, ModelUsage, Progress, Timings, Usage

METADATA = Metadata(latency_ms=1234.0, timings=Timings())


def result(text: str, structured: object = None) -> CallResult:
    return CallResult("id", [{"type": "text", "text": text}], structured, METADATA)


def pretend_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have both outputs say that they are a terminal."""
    monkeypatch.setenv("TERM", "xterm")
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (Progress("reading"), "reading"),
        (Progress("reading", 1), "reading (1)"),
        (Progress("reading", 0, 3), "reading (0/3)"),
        (Progress("waiting", 1.5, 2.5), "waiting (1.5/2.5)"),
    ],
)
def test_a_report_is_one_line(report: Progress, line: str) -> None:
    """A report shows the message, and the count if it is known."""
    assert progress_line(report) == line


def test_the_footer_has_model_tokens_and_cost() -> None:
    """The footer shows provider, model, simulation, tokens, cost and time, if they are known."""
    metadata = Metadata(1234.0, Timings(), "kimi", "k2", Usage(10, 20), Cost(0.5, "USD"), simulated=True)
    assert footer(metadata) == "kimi · k2 · simulated · 10+20 tokens · 0.5000 USD · 1.23 s"
    assert footer(METADATA) == "1.23 s"


def test_estimates_are_marked_with_about() -> None:
    """Estimated tokens and costs are marked; costs in two currencies are shown separately."""
    usage, cost = Usage(10, 20, estimated=True), Cost(0.5, "USD", estimated=True)
    assert footer(Metadata(1000.0, Timings(), "kimi", "k2", usage, cost)) == (
        "kimi · k2 · about 10+20 tokens · about 0.5000 USD · 1.00 s"
    )
    spent = (ModelUsage("kimi", "k2", 1, usage, cost), ModelUsage("glm", "g", 1, usage, Cost(2.0, "CNY")))
    several = Metadata(1000.0, Timings(), "glm", "g", usage, usage_by_model=spent)
    assert footer(several) == "glm · g · about 10+20 tokens · about 0.5000 USD + 2.0000 CNY · 1.00 s"


def test_a_truncated_answer_has_a_notice() -> None:
    """The tool's notice is a line for a person, terminal or not; data without one says nothing."""
    cut_off = result("Half of", {"finish_reason": "length", "notice": "it was cut off"})
    assert stderr_lines(cut_off, terminal=False) == ["notice: it was cut off"]
    assert stderr_lines(cut_off, terminal=True) == ["notice: it was cut off", "1.23 s"]
    assert (
        stderr_lines(result("all", {"a": 1}), terminal=False) == stderr_lines(result("all", [1]), terminal=False) == []
    )


def test_simulated_answers_are_always_marked() -> None:
    """The footer is shown on terminals only, except for simulated answers."""
    made_up = replace(result("hi"), metadata=Metadata(1234.0, Timings(), "kimi", "k2", simulated=True))
    assert stderr_lines(made_up, terminal=False) == ["kimi · k2 · simulated · 1.23 s"]


def test_a_json_answer_has_every_field() -> None:
    """Missing values are null, so that programs need no checks."""
    keys = {"request_id", "ok", "outputs", "structured", "error", "metadata"}
    answered = result("hi")
    good = json.loads(json_answer("id", answered, answered.metadata))
    bad = json.loads(json_answer("id", CallTimeoutError("late"), None))
    assert set(good) == set(bad) == keys
    assert (good["ok"], good["error"], bad["ok"]) == (True, None, False)
    assert (bad["error"]["code"], bad["outputs"], bad["metadata"]) == ("TIMEOUT", [], None)


def test_without_a_terminal_text_is_printed_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    """Pipes get the tool's own text."""
    print_result(result('{"a":1}', {"a": 1}))
    assert capsys.readouterr().out == '{"a":1}\n'


def test_notes_after_json_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe gets JSON alone; texts after a tool's own words stay with them."""
    note = {"type": "text", "text": "Shaped the list."}
    shaped = result('{"a":1}', {"a": 1})
    print_result(replace(shaped, outputs=[*shaped.outputs, note]))
    assert capsys.readouterr() == ('{"a":1}\n', "Shaped the list.\n")
    words = result("1 model", {"a": 1})
    print_result(replace(words, outputs=[*words.outputs, note]))
    assert capsys.readouterr() == ("1 model\nShaped the list.\n", "")


def test_on_a_terminal_json_is_pretty_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the text is the JSON of the data, it is indented; other text is unchanged."""
    pretend_terminal(monkeypatch)
    print_result(result('{"a":1}', {"a": 1}))
    assert capsys.readouterr().out.count("\n") == 3
    print_result(result("1 model", {"a": 1}))
    assert capsys.readouterr().out == "1 model\n"


def test_on_a_terminal_progress_is_one_updating_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports are shown on stderr until the first piece of text; afterwards none interrupts the text."""
    pretend_terminal(monkeypatch)
    with CallDisplay() as display:
        display.progress(Progress("[thinking]"))
        display.chunk("one ")
        capsys.readouterr()
        display.progress(Progress("still"))
        display.chunk("two")
    captured = capsys.readouterr()
    assert display.streamed
    assert captured.out == "two\n"
    assert "still" not in captured.err


def test_without_a_terminal_each_report_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal, no line is updated in place, and one that a heartbeat repeats is printed once."""
    with CallDisplay() as display:
        display.progress(Progress("one", 1, 2))
        display.progress(Progress("one", 1, 2))
    assert not display.streamed
    assert capsys.readouterr() == ("", "one (1/2)\n")
