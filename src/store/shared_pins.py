"""The pins of sources that all nodes share. Their content is opaque to the store."""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, Protocol

PinNews = Literal["pins", "listing"]
"""``pins``: a set of pins has changed. ``listing``: a node has found changed tools in the listing of a source."""


class StoredPins(NamedTuple):
    """A set of pins."""

    content: bytes
    revision: int
    """Greater after each change, even if the set was deleted in between."""


class SharedPinsPort(Protocol):
    """Sets of pins by name. Methods that wait raise StoreError if the database does not answer."""

    on_news: Callable[[PinNews, str], None]
    """Called on the event loop with the name of a set of pins, or of a source, when another node has written."""

    def start(self) -> None:
        """Begins to listen to the other nodes."""
        ...

    async def read(self, name: str) -> StoredPins | None:
        """Returns a set of pins; None if there is none."""
        ...

    async def replace(self, name: str, content: bytes, revision: int | None) -> int | None:
        """Stores a set of pins if the stored set has this revision or, with None, if no set is stored. Returns the new
        revision; None if the condition does not hold. One statement.
        """
        ...

    async def revisions(self) -> Mapping[str, int]:
        """Returns the revisions of all sets."""
        ...

    async def notify_listing(self, source: str) -> None:
        """Notifies the other nodes that this one has found changed tools in the listing of a source."""
        ...
