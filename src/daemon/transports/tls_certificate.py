"""The certificate of the WebSocket port, reloaded without a restart when it is renewed."""

import hashlib
from pathlib import Path

from ..config.setting_types import tls_context


class TlsCertificate:
    """A certificate chain and its key, loaded into a server's TLS context.

    Raises:
        OSError: as raised by ``tls_context``.
    """

    def __init__(self, cert: Path, key: Path) -> None:
        self._files = (cert, key)
        self._loaded = self._fingerprint()  # first, so that a renewal in between is not missed
        self.context = tls_context(cert, key)
        """The server's context; handshakes after ``renew`` use the renewed certificate."""

    def renew(self) -> bool:
        """Loads the files again if their content changed; returns whether it did.

        Raises:
            OSError: as raised by ``tls_context``; the previous certificate stays in use.
        """
        fingerprint = self._fingerprint()
        if fingerprint == self._loaded:
            return False
        tls_context(*self._files)  # in a separate context: a failed load may change half of a pair
        self.context.load_cert_chain(*self._files, password="")
        self._loaded = fingerprint
        return True

    def _fingerprint(self) -> bytes:
        return hashlib.sha256(b"\0".join(file.read_bytes() for file in self._files)).digest()
