"""The labels that clients of the revisions with ``initialize`` have ended by DELETE: requests with them get 404.

The labels are in memory, and their number is bounded: a forgotten label is accepted again, as after a restart (decision
30).
"""

from typing import Final

MAX_ENDED: Final = 1_000
"""The maximum number of labels of one principal; beyond that, the labels that ended first are forgotten."""
MAX_PRINCIPALS: Final = 1_000


class EndedClients:
    """The ended labels of each principal. No principal can end another's label, or cause it to be forgotten early."""

    def __init__(self) -> None:
        # Dictionaries keep their order: labels in the order in which they ended, and principals by their last ended
        # label.
        self._ended: dict[str, dict[str, None]] = {}

    def __repr__(self) -> str:
        return f"<EndedClients of {len(self._ended)} principals>"

    def __contains__(self, key: tuple[str, str]) -> bool:
        """``key`` is the name of the principal and the label."""
        principal, label = key
        return label in self._ended.get(principal, ())

    def add(self, principal: str, label: str) -> None:
        """Records that a client has ended."""
        labels = self._ended.pop(principal, {})
        labels[label] = None
        self._ended[principal] = labels
        if len(labels) > MAX_ENDED:
            del labels[next(iter(labels))]
        if len(self._ended) > MAX_PRINCIPALS:
            del self._ended[next(iter(self._ended))]
