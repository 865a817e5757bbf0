"""How the dashboard shows values."""

import json

import pytest
from toold.dashboard import Pages, diff_lines, load_assets, page_formats


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [(None, "–"), (9.94, "9.9 ms"), (12.4, "12 ms"), (3210, "3.2 s"), (245_000, "4 min 5 s"), (7_380_000, "2 h 3 min")],
)
def test_durations(milliseconds: float | None, shown: str) -> None:
    """A duration has the unit in which people read it."""
    assert page_formats.duration(milliseconds) == shown


@pytest.mark.parametrize(
    ("number", "shown"), [(0, "0 B"), (1023, "1023 B"), (3482, "3.4 KB"), (5 * 1024**4, "5120.0 GB")]
)
def test_sizes(number: int, shown: str) -> None:
    """A size has a unit of powers of 1,024."""
    assert page_formats.size(number) == shown


def test_small_amounts_keep_two_digits() -> None:
    """An amount below a tenth is not rounded to nothing."""
    assert page_formats.money({"USD": 1234.5, "CNY": 0.00123}) == "0.0012 CNY, 1,234.50 USD"


@pytest.mark.parametrize("unix", [None, 1e300, float("nan")])
def test_no_time(unix: float | None) -> None:
    """A missing or impossible time is a dash."""
    assert page_formats.when(unix) == "–"


def test_long_texts_are_cut_in_the_middle() -> None:
    """The beginning and the end of a long text stay, and the page says how much is missing."""
    shown = page_formats.block("a" * 20_000 + "b" * 20_000)
    assert shown.startswith("aaa")
    assert shown.endswith("bbb")
    assert "… 20,000 characters …" in shown


def test_descriptions_have_paragraphs_and_code() -> None:
    """Backquotes mark code, a blank line begins a paragraph, a line of a list stays a line; markup is escaped."""
    shown = page_formats.prose("Runs `a <b>`\nand more.\n\n- one\n- two <img>")
    assert shown == "<p>Runs <code>a &lt;b&gt;</code> and more.</p><p>- one\n- two &lt;img&gt;</p>"


def test_a_description_begins_with_its_sentence() -> None:
    """A card shows the first sentence, on one line."""
    assert page_formats.sentence("Does\nthis. And that.") == "Does this"


def test_codes_have_a_meaning() -> None:
    """Each code is explained; an unknown one, such as that of a newer version, stays as it is."""
    assert page_formats.meaning("TOOL_NOT_FOUND") == "No tool has this name."
    assert page_formats.meaning("NEWER_CODE") == "NEWER_CODE"


def test_json_of_a_form_is_readable_and_sent_back_unchanged() -> None:
    """Letters stay as they are; what is not printed, such as a change of the direction of text, is escaped."""
    value = {"customer": "Müller 李 😀", "hidden": "a\u202eb\u0007\ud800\U000e0001"}
    shown = page_formats.as_form_json(value)
    assert "Müller 李 😀" in shown
    assert r"a\u202eb\u0007\ud800\udb40\udc01" in shown
    assert json.loads(shown) == value


def test_names_break_at_underscores_and_are_escaped() -> None:
    """A browser may break a long name after an underscore, and the name is escaped."""
    assert page_formats.breakable("A_<b>_C") == "A_<wbr>&lt;b&gt;_<wbr>C"


def test_the_lines_of_a_diff() -> None:
    """Each line has its kind, without the sign; a gap between parts has no text. A new version has all lines but those
    of the empty one: without the lines that both have, it would seem to end early.
    """
    diff = "@@ -1 +1 @@\n-old\n+new\n same"
    assert diff_lines(diff) == [("place", ""), ("removed", "old"), ("added", "new"), ("same", "same")]
    assert diff_lines(diff, new=True) == [("place", ""), ("added", "new"), ("same", "same")]
    assert diff_lines("") == []


@pytest.mark.parametrize(
    ("executed", "words"), [("no", "had no effect"), ("maybe", "may have had an effect"), ("yes", "had an effect")]
)
def test_the_effect_of_a_call_has_the_words_of_the_protocol(executed: str, words: str) -> None:
    """``executed`` and ``retryable`` are shown as docs/protocol.md names them, and explained."""
    pages = Pages(load_assets(), version="1")
    shown = pages.render("effect", executed=executed, retryable=None)
    assert f"<strong>executed: {executed}</strong> The call {words}." in shown
    assert "retryable" not in shown  # the audit does not have it
    assert "retryable: yes" in pages.render("effect", executed=executed, retryable=True)


def test_a_field_for_a_decision_shows_its_whole_text() -> None:
    """A long line needs several rows; a very long text scrolls."""
    assert page_formats.form_rows("{}") == 3
    assert page_formats.form_rows("x" * 400) > 10
    assert page_formats.form_rows("\n" * 1_000) == 30
