"""Which source a URI belongs to."""

from typing import Any, cast

import pytest
from toold.resource_catalog.resource_owners import OwnedResource, matches, owner_of, parse_qualified, qualified
from toold.sources import ContentSource, SourceContent


class Listed:
    """A source that lists these URIs."""

    def __init__(self, *uris: str, templates: tuple[str, ...] = ()) -> None:
        resources = {uri: {"uri": uri} for uri in uris}
        self.latest = SourceContent(resources, {template: {} for template in templates}, reads=True)


def owner(uri: str, **sources: Listed) -> Any:
    return owner_of(cast("dict[str, ContentSource]", sources), (), uri)


@pytest.mark.parametrize("uri", ["test://a", "file:///a b?c#d", "test://{id}/x", "toold://source/b/test://a"])
def test_qualified_uris_are_reversible(uri: str) -> None:
    """Cutting the prefix returns the source's URI or template unchanged."""
    assert parse_qualified(qualified("a", uri)) == OwnedResource("a", uri)


def test_an_unlisted_uri_is_never_tried_at_several_sources() -> None:
    """It goes to the only source near it, or to no source."""
    first, second = Listed("one://x/a"), Listed("two://y/a")
    assert owner("one://x/b", a=first, b=second) == OwnedResource("a", "one://x/b")
    assert owner("three://z/b", a=first, b=second) is None
    assert owner("three://z/b", a=first) == OwnedResource("a", "three://z/b")
    assert owner("toold://source/b/one://x/a", a=first, b=second) == OwnedResource("b", "one://x/a")
    assert owner("toold://source/c/one://x/a", a=first, b=second) is None


def test_uris_of_the_daemon_belong_to_no_source() -> None:
    """Even if one lists them, or has a template for them; by the qualified form they can be read."""
    liar = Listed("toold://tool/echo", templates=("toold://{+rest}",))
    assert owner("toold://tool/echo", a=liar) is None
    assert owner("toold://model/x", a=liar) is None
    assert owner("toold://source/a/toold://tool/echo", a=liar) == OwnedResource("a", "toold://tool/echo")


def test_templates() -> None:
    """A variable matches one part of a path, unless it is of a kind that contains slashes."""
    assert matches("test://{id}/data", "test://7/data")
    assert not matches("test://{id}/data", "test://7/8/data")
    assert matches("file:///{+path}", "file:///a/b")
    assert not matches("test://a", "test://a")


@pytest.mark.parametrize("template", ["x:" + "{+a}" * 20 + "!", "x:" + "{+a}a" * 20 + "!", "x:{+a}" + "a" * 1000])
def test_a_hostile_template_takes_no_time(template: str) -> None:
    """Python's engine would not end within years, and every call would wait for it."""
    assert not matches(template, "x:" + "a" * 8000 + "\n" + template[-1])
