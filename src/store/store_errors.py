"""The errors of the store."""


class StoreError(Exception):
    """The database cannot be used; the message says why and what to do."""

    def __init__(self, message: str, reason: str, *, no_space: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        """The message of SQLite or the system, without paths: it may be shown to callers."""
        self.no_space = no_space
        """The write failed because the disk is full; a later attempt may succeed."""


class NodeFencedError(StoreError):
    """Another node has declared this one dead, or the database has lost this node's commits: the process must end."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"this node must end: {reason}", reason)


def write_error(reason: str) -> StoreError:
    """The error of an awaited write."""
    return StoreError(f"the database cannot be written ({reason})", reason)
