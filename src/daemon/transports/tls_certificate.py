"""The certificate that the WebSocket port shows, and taking a renewed one without a restart."""

import hashlib
from pathlib import Path

from ..config.setting_types import tls_context


class TlsCertificate:
    """A certificate chain and its key, loaded into a server's TLS context.

    Raises:
        OSError: as ``tls_context``.
    """

    def __init__(self, cert: Path, key: Path) -> None:
        self._files = (cert, key)
        self._loaded = self._fingerprint()  # first: a pair that is renewed in between is loaded again, and not missed
        self.context = tls_context(cert, key)
        """For the server; handshakes of the time after ``renew`` show what it loaded."""

    def renew(self) -> bool:
        """Load the files again where their content has changed; whether it has.

        Raises:
            OSError: as ``tls_context``; what was loaded before stays in use.
        """
        found = self._fingerprint()
        if found == self._loaded:
            return False
        tls_context(*self._files)  # apart first: half of a pair that does not fit would stay in the one in use
        self.context.load_cert_chain(*self._files, password="")
        self._loaded = found
        return True

    def _fingerprint(self) -> bytes:
        return hashlib.sha256(b"\0".join(file.read_bytes() for file in self._files)).digest()
