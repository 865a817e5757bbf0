"""The certificate that clients see before and after a renewal."""

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
    """Writes a self-signed certificate and its key to ``cert.pem`` and ``key.pem``; returns the certificate."""

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
    """Returns the certificate that a new connection sees."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=certificate.context)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    async with server:
        port = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        result: bytes | None = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        await writer.wait_closed()
        return result


async def test_a_renewed_certificate_is_used(certificate: TlsCertificate, make: Make) -> None:
    """By the same context, so existing listeners use it; until ``renew`` they use the old one."""
    second = make("second")
    assert await shown(certificate) != second
    assert certificate.renew()
    assert await shown(certificate) == second


def test_unchanged_files_are_not_a_renewal(certificate: TlsCertificate) -> None:
    """``renew`` returns False."""
    assert not certificate.renew()


async def test_a_mismatched_pair_is_refused(certificate: TlsCertificate, make: Make, tmp_path: Path) -> None:
    """As in the middle of a renewal; once both files match, they are loaded."""
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
