"""The certificate: which one a handshake shows before and after it was renewed."""

import asyncio
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from toold.daemon.transports.tls_certificate import TlsCertificate

Make = Callable[[str], bytes]


@pytest.fixture
def make(starts_processes: None, tmp_path: Path) -> Make:
    """Writes a self-signed certificate and its key into ``cert.pem`` and ``key.pem``; returns the certificate."""

    def write(name: str) -> bytes:
        key = [
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-keyout",
            str(tmp_path / "key.pem"),
        ]
        words = [
            "openssl",
            "req",
            "-x509",
            *key,
            "-out",
            str(tmp_path / "cert.pem"),
            "-days",
            "2",
            "-subj",
            f"/CN={name}",
        ]
        subprocess.run(words, check=True, capture_output=True)
        return ssl.PEM_cert_to_DER_cert((tmp_path / "cert.pem").read_text())

    return write


@pytest.fixture
def certificate(make: Make, tmp_path: Path) -> TlsCertificate:
    make("first")
    return TlsCertificate(tmp_path / "cert.pem", tmp_path / "key.pem")


async def shown(certificate: TlsCertificate) -> bytes | None:
    """What a client is shown that connects now."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=certificate.context)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    async with server:
        port = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        found: bytes | None = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        await writer.wait_closed()
        return found


async def test_a_renewed_certificate_is_shown_from_then_on(certificate: TlsCertificate, make: Make) -> None:
    """By the same context, so that what listens already shows it; until ``renew`` the old one is."""
    second = make("second")
    assert await shown(certificate) != second
    assert certificate.renew()
    assert await shown(certificate) == second


def test_files_that_did_not_change_are_nothing_new(certificate: TlsCertificate) -> None:
    """Nothing to tell of."""
    assert not certificate.renew()


async def test_half_of_a_pair_is_refused_and_the_old_one_stays(
    certificate: TlsCertificate, make: Make, tmp_path: Path
) -> None:
    """A key that does not fit, as in the middle of a renewal; once both are there they are taken."""
    key = (tmp_path / "key.pem").read_bytes()
    second = make("second")
    fitting = (tmp_path / "key.pem").read_bytes()
    (tmp_path / "key.pem").write_bytes(key)
    before = await shown(certificate)
    with pytest.raises(OSError, match=r".+"):
        certificate.renew()
    assert await shown(certificate) == before
    (tmp_path / "key.pem").write_bytes(fitting)
    assert certificate.renew()
    assert await shown(certificate) == second
