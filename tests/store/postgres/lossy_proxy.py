"""A socket between a node and PostgreSQL that loses requests or answers."""

import contextlib
import select
import socket
import tempfile
import threading
from pathlib import Path
from typing import Final, Literal, Self

Loss = Literal["request", "answer"]

# The server's last message before it waits for the client: Z, four bytes of length, and whether a transaction is open.
_IDLE: Final = b"Z\0\0\0\x05I"
_IN_TRANSACTION: Final = b"Z\0\0\0\x05T"


class LossyProxy:
    """Forwards each connection to the server's Unix socket.

    ``lose("request")``: the next bytes of a client are not forwarded, and the connection ends. ``lose("answer")``: they
    are forwarded, the server acts on them until its transaction ends, and then the connection ends without its last
    answer. ``refusing``: new connections are refused. ``silent``: nothing is forwarded, and nothing ends.
    """

    def __init__(self, upstream: Path) -> None:
        self._upstream = str(upstream / ".s.PGSQL.5432")
        self._directory = tempfile.TemporaryDirectory(prefix="toold-px-")
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(f"{self._directory.name}/.s.PGSQL.5432")
        self._server.listen()
        self._loss: Loss | None = None
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.refusing = False
        self.silent = False
        self.lost = threading.Event()
        """Set once something was lost."""
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()
        self.disconnect()
        self._directory.cleanup()

    def address(self, database: str) -> str:
        """The address of a database through this proxy."""
        return f"postgresql://postgres@/{database}?host={self._directory.name}"

    def lose(self, loss: Loss) -> None:
        """Loses the next request of any connection, or the answer to it."""
        self.lost.clear()
        self._loss = loss

    def disconnect(self) -> None:
        """Ends all connections."""
        for pair in list(self._pairs):
            self._close(pair)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            if self.refusing:
                client.close()
                continue
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._upstream)
            pair = (client, server)
            self._pairs.append(pair)
            threading.Thread(target=self._forward, args=(pair,), daemon=True).start()

    def _forward(self, pair: tuple[socket.socket, socket.socket]) -> None:
        client, server = pair
        losing = False
        with contextlib.suppress(OSError, ValueError):
            while True:
                readable, _, _ = select.select(pair, [], [])
                if client in readable:
                    request = client.recv(1 << 16)
                    if not request or self._loss == "request":
                        break
                    losing = losing or self._loss == "answer"
                    if not self.silent:
                        server.sendall(request)
                if server in readable:
                    answer = server.recv(1 << 16)
                    if not answer or (losing and answer.endswith(_IDLE)):
                        break
                    if not losing or answer.endswith(_IN_TRANSACTION):
                        client.sendall(answer)
        if self._loss is not None:
            self._loss = None
            self.lost.set()
        self._close(pair)

    def _close(self, pair: tuple[socket.socket, socket.socket]) -> None:
        with contextlib.suppress(ValueError):
            self._pairs.remove(pair)
        for end in pair:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
