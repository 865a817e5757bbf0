"""Listings of resources and prompts by servers that behave badly."""

from toold.sources.mcp.content_listing import MAX_CONTENT_PAGES, MAX_ENTRIES, EntryCollector, bounded_completion


def test_endless_cursors_end() -> None:
    """A list ends at the limit of pages, and at a cursor that repeats."""
    endless, repeating = EntryCollector("uri"), EntryCollector("uri")
    pages = 1
    while endless.add_page([], f"cursor {pages}") is not None:
        pages += 1
    assert pages == MAX_CONTENT_PAGES
    assert repeating.add_page([], "again") == "again"
    assert repeating.add_page([], "again") is None
    assert "repeats" in repeating.notes[0].what


def test_huge_lists_are_cut() -> None:
    """A list ends at the limit of entries, with a note."""
    collector = EntryCollector("uri")
    assert collector.add_page([{"uri": f"test://{number}"} for number in range(MAX_ENTRIES + 1)], "more") is None
    assert len(collector.entries) == MAX_ENTRIES
    assert "2,000 entries" in collector.notes[0].what


def test_unusable_entries_are_omitted() -> None:
    """Entries without a usable URI, and long ones, are noted; control characters of texts become spaces."""
    collector = EntryCollector("uri")
    long = {"uri": "test://long", "description": "x" * 70_000}
    listed = [{"uri": "test://\x1b[2J"}, {"uri": 5}, {}, None, long, {"uri": "test://a", "name": "a\x1b[31m"}]
    collector.add_page(listed, None)
    assert collector.entries == {"test://a": {"uri": "test://a", "name": "a [31m"}}
    assert len(collector.notes) == 5


def test_completions_are_bounded() -> None:
    """At most 100 values pass, and an answer in another form is invalid."""
    many = bounded_completion({"completion": {"values": ["x"] * 150, "total": -1}})
    assert many == {"completion": {"values": ["x"] * 100, "hasMore": True}}
    few = {"completion": {"values": ["x"], "total": 1, "hasMore": False}}
    assert bounded_completion(few) == few
    assert bounded_completion({"completion": {"values": [1]}}) is None
