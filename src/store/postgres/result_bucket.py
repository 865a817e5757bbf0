"""Objects of retained results in a bucket: S3, a compatible service such as Supabase Storage, or another service that
``obstore`` supports. Imported only if a bucket is configured, because it needs an extra.
"""

import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError, UnauthenticatedError
from obstore.store import from_url

from ..store_errors import StoreError

_REASON_CHARS: Final = 200
_TIMEOUT: Final = "30s"
"""The timeout of one request; an upload has several."""
_RETRIES: Final = {"max_retries": 5, "retry_timeout": timedelta(seconds=20)}
"""The retries of one request. If the server refuses connections, they take some three seconds, and a call waits."""
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_ALLOW_HTTP: Final = "AWS_ALLOW_HTTP"
_CODE: Final = re.compile(r"<Code>(\w{1,60})</Code>")
_INSTANCE_KEYS: Final = "http://169.254."
"""The address at which programs on a cloud's machines get keys, if no other keys are set."""


class ResultBucket:
    """The objects below one prefix of a bucket. Methods block, and raise StoreError if the bucket cannot be used."""

    def __init__(self, url: str, env: Mapping[str, str] = os.environ) -> None:
        """``url`` is, for example, ``s3://bucket/prefix``. Keys and the endpoint come from the service's environment
        variables, such as ``AWS_ACCESS_KEY_ID`` and ``AWS_ENDPOINT_URL``.
        """
        self._name = urlsplit(url).netloc
        if url.startswith("s3:"):
            _require_endpoint(env)
        with self._reported():
            options: Any = {} if url.startswith("file:") else {"client_options": _client(env), "retry_config": _RETRIES}
            self._store: Any = from_url(url, **options)

    def check(self) -> None:
        """Writes, reads and deletes a small object."""
        name = f"check-{secrets.token_hex(8)}"
        self.put(name, [b"toold"])
        self.read(name, 0, 5)
        self.delete([name])

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

        with self._reported():
            obstore.put(self._store, name, counted())
        if failed is not None:
            raise failed
        return size

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Returns ``size`` bytes of an object, which must have at least that many."""
        if size <= 0:
            return b""
        with self._reported():
            return bytes(obstore.get_range(self._store, name, start=offset, length=size))

    def delete(self, names: Sequence[str]) -> None:
        """Deletes objects; those that do not exist are skipped."""
        for name in names:
            with self._reported(), suppress(FileNotFoundError):
                obstore.delete(self._store, name)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Raises errors of the bucket as StoreError."""
        try:
            yield
        except StoreError:
            raise
        except (BaseError, OSError, ValueError) as error:
            raise _failed(_reason(error, self._name)) from None


def _failed(reason: str) -> StoreError:
    return StoreError(f"the bucket of results cannot be used ({reason})", reason)


def _require_endpoint(env: Mapping[str, str]) -> None:
    """Checks the address of the server: the library crashes on some invalid ones.

    Raises:
        StoreError: it cannot be used.
    """
    for variable in _ENDPOINTS:
        value = env.get(variable)
        if not value:
            continue
        try:
            parts = urlsplit(value)
            usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise _failed(f"{variable} must be a URL such as https://s3.example.com")
        if parts.scheme == "http" and not _allows_http(env):
            raise _failed(
                f"{variable} begins with http://, which shows keys and results; set {_ALLOW_HTTP}=true for that"
            )


def _client(env: Mapping[str, str]) -> dict[str, Any]:
    # Explicit options override those of the variable.
    return {"timeout": _TIMEOUT, "allow_http": _allows_http(env)}


def _allows_http(env: Mapping[str, str]) -> bool:
    return env.get(_ALLOW_HTTP, "").lower() in {"true", "1", "yes"}


def _reason(error: Exception, bucket: str) -> str:
    """Returns, in one line, why the bucket cannot be used."""
    text = str(error)
    code = _CODE.search(text)
    shown = f" ({code[1]})" if code else ""
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return (
            f"the server refuses the keys{shown}: they need the right to read, write and delete in the bucket {bucket}"
        )
    if isinstance(error, NotFoundError | FileNotFoundError):
        return f"the bucket {bucket}, or the object, does not exist{shown}"
    if _INSTANCE_KEYS in text:
        return "there are no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    if "error sending request" in text:
        asked = re.search(r"(https?://[^/\s]+)", text)
        return f"no answer from {asked[1] if asked else 'the server'}: check the address and the network"
    return " ".join(text.split("\n", 1)[0].split())[:_REASON_CHARS]
