"""Objects of retained results in a bucket: S3 and what is compatible with it, such as Supabase Storage, or another
service that ``obstore`` knows. Imported only if a bucket is configured, because it needs an extra.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import obstore
from obstore.store import from_url

from ..store_errors import StoreError

_REASON_CHARS: Final = 200
_TIMEOUT: Final = "30s"
"""The timeout of one request; an upload has several."""


class ResultBucket:
    """The objects below one prefix of a bucket. Methods block, and raise StoreError if the bucket cannot be used."""

    def __init__(self, url: str) -> None:
        """``url`` is such as ``s3://bucket/prefix``. Keys and the endpoint come from the environment variables of the
        service, such as ``AWS_ACCESS_KEY_ID`` and ``AWS_ENDPOINT_URL``.
        """
        with _reported():
            options: Any = {} if url.startswith("file:") else {"client_options": {"timeout": _TIMEOUT}}
            self._store: Any = from_url(url, **options)

    def put(self, name: str, pieces: Iterable[bytes]) -> int:
        """Writes an object piece by piece; returns its size. An error of ``pieces`` is raised unchanged; the object
        then remains.
        """
        size, failed = 0, None

        def counted() -> Iterator[bytes]:
            nonlocal size, failed
            try:
                for piece in pieces:
                    size += len(piece)
                    yield piece
            except Exception as error:  # noqa: BLE001 - raised below: the library would wrap it
                failed = error

        with _reported():
            obstore.put(self._store, name, counted())
        if failed is not None:
            raise failed
        return size

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Returns ``size`` bytes of an object that has at least as many."""
        if size <= 0:
            return b""
        with _reported():
            return bytes(obstore.get_range(self._store, name, start=offset, length=size))

    def delete(self, names: Sequence[str]) -> None:
        """Deletes objects; those that do not exist are skipped."""
        for name in names:
            with _reported(), suppress(FileNotFoundError):
                obstore.delete(self._store, name)


@contextmanager
def _reported() -> Iterator[None]:
    """Raises errors of the bucket as StoreError with their first line; the other lines are for developers."""
    try:
        yield
    except StoreError:
        raise
    except (obstore.exceptions.BaseError, OSError, ValueError) as error:
        reason = " ".join(str(error).split("\n", 1)[0].split())[:_REASON_CHARS]
        raise StoreError(f"the bucket of results cannot be used ({reason})", reason) from None
