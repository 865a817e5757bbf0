"""Documents are cut into chunks that can be cited."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.knowledge.chunking import cut_document
from toold.knowledge.document_text import read_document
from toold.knowledge.rank_fusion import fused_scores


def test_a_chunk_ends_with_a_sentence_and_repeats_the_last_ones() -> None:
    """Chunks end at the ends of sentences, and overlap by whole ones."""
    text = " ".join(f"Sentence number {number:03} says something." for number in range(40))
    chunks = cut_document(read_document("a.txt", text), size=200, overlap=50)
    assert all(chunk.text.startswith("Sentence") and chunk.text.endswith(".") for chunk in chunks)
    assert all(len(chunk.text) <= 200 for chunk in chunks)
    ends = [chunk.text.rpartition("Sentence")[2] for chunk in chunks[:-1]]
    assert all(f"Sentence{end}" in chunk.text for end, chunk in zip(ends, chunks[1:], strict=True))


def test_a_chunk_names_its_headings_and_its_line() -> None:
    """A section begins a chunk, which has the headings above it and the line in the file; fences have no headings."""
    intro, more, last = "Intro. " * 10, "More. " * 10, "Last. " * 10
    text = f"# Top\n\n{intro}\n\n## Use\n\n```\n# no heading\n```\n{more}\n\nEnd\n===\n\n{last}\n"
    chunks = cut_document(read_document("a.md", text), size=100, overlap=0)
    assert [(chunk.heading, chunk.line) for chunk in chunks] == [("Top", 1), ("Top > Use", 5), ("End", 12)]


def test_a_page_is_read_without_its_tags_and_scripts() -> None:
    """Of HTML, text, title, headings and lines of the source remain."""
    page = (
        "<!doctype html><html><head><title>Shop &amp; more</title>\n<script>var x = '<p>no</p>';</script></head>\n"
        "<body><!-- hidden <b>too</b> -->\n<h2>Open <em>hours</em></h2>\n<p>From 7&nbsp;to 12, a < b.</p></body></html>"
    )
    document = read_document("shop.html", page)
    [chunk] = cut_document(document, size=1000, overlap=0)
    assert document.title == "Shop & more"
    assert chunk.text.split() == ["Open", "hours", "From", "7", "to", "12,", "a", "<", "b."]
    assert (chunk.heading, chunk.line) == ("Open hours", 4)


@pytest.mark.parametrize("ending", ["md", "html", "txt"])
@given(text=st.text(st.sampled_from("ab .\n#<>/!-=`é。"), max_size=400), size=st.integers(10, 60))
def test_no_text_is_lost(ending: str, text: str, size: int) -> None:
    """Of any text, every word is in a chunk, and no chunk is longer than its size or without text."""
    document = read_document(f"a.{ending}", text)
    chunks = cut_document(document, size=size, overlap=size // 3)
    assert all(0 < len(chunk.text) <= size for chunk in chunks)
    joined = "".join("".join(chunk.text.split()) for chunk in cut_document(document, size=size, overlap=0))
    assert joined == "".join(document.text.split())
    lines = document.text.count("\n") + 1 if ending != "html" else text.count("\n") + 1
    assert all(1 <= chunk.line <= lines for chunk in chunks)


def test_a_huge_line_is_cut() -> None:
    """A line without spaces is cut at the size; one with spaces between words."""
    chunks = cut_document(read_document("a.txt", "x" * 10_000 + " " + "word " * 2_000), size=1000, overlap=200)
    assert all(len(chunk.text) <= 1000 for chunk in chunks)
    assert chunks[0].text == "x" * 1000
    assert all(set(chunk.text.split()) == {"word"} for chunk in chunks[12:])


def test_what_two_searches_find_is_above_what_one_finds() -> None:
    """Fusion adds what each ranking says: second in both is better than first in one."""
    assert list(fused_scores([["a", "b"], ["c", "b"]])) == ["b", "a", "c"]


def test_signs_that_begin_no_tag_are_one_text() -> None:
    """A page of a million of them is one piece of text; tags among them are still tags."""
    document = read_document("page.html", f"<b>1 < 2 </1 {'<' * 1_000_000}</b><p>end")
    assert document.text == f"1 < 2 </1 {'<' * 1_000_000}\n\nend"
    assert len(document.starts) == 3
