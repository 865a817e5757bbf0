"""This daemon as a node of a cluster. Gives the other parts of the daemon access to the other nodes."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
import structlog
from pydantic import SecretStr

from ...protocol.tool_call import LOCAL
from ...sources import SourceManager
from ...store import ClusterPort, StoreError
from ...version import __version__
from ..config.setting_sources import SettingsError
from ..config.setting_types import MIN_TOKEN_CHARS, USABLE_TOKEN
from ..config.settings import Settings
from ..dispatch import Budget, PrincipalLimits, Router
from ..observability.daemon_view import DaemonProblem, LiveDaemonView
from ..observability.merged_metrics import merged_metrics
from ..observability.metrics import Metrics
from .admissions import ClusterAdmissions
from .configuration_digests import NodeDetails, details_of, differing, digests
from .membership import Membership
from .node_address import node_address
from .node_shares import NodeShares
from .peer_client import PeerClient
from .peer_key import PeerKey
from .peer_service import PeerService
from .pin_watch import PinWatch
from .session_relay import RelayOptions, SessionRelay

_LAST_WRITE_S: Final = 2.0
"""How long a database that does not respond can delay each of three steps at shutdown."""
_log = structlog.get_logger("toold.cluster")

SHOWN_SETTINGS: Final = 5
"""The maximum number of differing settings that one problem names."""


class ClusterNode:
    """The membership of this node, its relays and its requests to the others.

    Raises:
        SettingsError: the file of the cluster's secret cannot be used.
    """

    def __init__(
        self,
        store: ClusterPort,
        settings: Settings,
        name: str,
        service: PeerService,
        budgets: Callable[[], Iterable[Budget]],
        sources: Callable[[], SourceManager],
    ) -> None:
        """``name``: this node's name in the cluster."""
        self.store = store
        self.name = name
        self.admissions = ClusterAdmissions(store.limits, store.lease, budgets)
        """Permits of providers and budgets of all nodes."""
        self.shares = NodeShares(store.limits, store.lease)
        """This node's shares of the ``max_running`` of principals."""
        store.limits.on_wake = self._wake
        self.pins = PinWatch(store.pins, sources)
        """The pins of sources as other nodes change them."""
        self.service = service
        """The operations of this node that other nodes request."""
        self.key = PeerKey(peer_secret(settings).get_secret_value())
        self.cookie = f"toold_{self.key.digest('cookie')}"
        """The name of the dashboard's cookie on all nodes."""
        self.membership = Membership(store)
        options = RelayOptions(settings.ping_interval_s, settings.ping_timeout_s, _tls(settings.tls_cert))
        self.relay = SessionRelay(self.membership, self.key, options)
        self.peers = PeerClient(self.membership, self.key)
        self.membership.check_node = self.peers.check
        self._digests: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"<ClusterNode {self.membership!r}>"

    def _wake(self, limit: str) -> None:
        kind, _, name = limit.partition(":")
        if kind == "provider":
            self.admissions.wake(name)
        elif kind == "running":
            self.shares.wake(name)

    async def announce(self, settings: Settings, files: Mapping[str, bytes], *, port: int, http_port: int) -> None:
        """Stores the address of this node, and the digests of its settings and of these files.

        Raises:
            StoreError: the database cannot be written.
        """
        self._digests = digests(settings, files, self.key.digest)
        address = node_address(settings.peer_host or settings.host, port, http_port, tls=settings.tls_cert is not None)
        details = msgspec.json.encode(NodeDetails(__version__, dict(self._digests))).decode()
        await self.store.announce(address, details)
        await self.membership.refresh()
        for problem in self._differences:
            _log.warning(problem.summary, reason=problem.detail)

    async def begin_drain(self) -> None:
        """Stores that this node is about to stop, so that it is not declared dead when its port closes."""
        await _attempt(self.store.drain(), "that the node stops")

    async def leave(self) -> None:
        """Releases all sessions before the ports close, so that their clients find them at any other node."""
        await self.admissions.close(_LAST_WRITE_S)
        await _attempt(self.membership.leave(), "that the node has released its sessions")

    @property
    def may_answer(self) -> bool:
        """Whether this node has a valid lease."""
        return self.membership.may_answer

    @property
    def problems(self) -> Sequence[DaemonProblem]:
        """Problems for operators: settings that differ between the nodes, and a lease that has ended."""
        problems = []
        if not self.membership.may_answer:
            problems.append(
                DaemonProblem(
                    "the node has lost contact with the database",
                    "the lease of this node has ended: sessions that can be resumed are served by other nodes",
                )
            )
        return problems + self._differences

    @property
    def _differences(self) -> list[DaemonProblem]:
        problems = []
        for node in self.membership.peers:
            names = differing(self._digests, details_of(node).settings)
            if names:
                shown = ", ".join(names[:SHOWN_SETTINGS]) + (", …" if len(names) > SHOWN_SETTINGS else "")
                problems.append(
                    DaemonProblem("the nodes have different settings", f"node {node.name} has other values of: {shown}")
                )
        return problems

    async def metrics(self) -> bytes:
        """The metrics of all nodes, each sample with the label ``node``."""
        pages, unanswered = await self.peers.metrics()
        return merged_metrics({self.peers.own_name: self.service.metrics(), **pages}, unanswered).encode()

    async def rows(self) -> list[dict[str, Any]]:
        """The live nodes, for ``status``: whether each has answered, and its ``connections``, ``calls`` and
        ``problems``.
        """
        own, summaries = self.membership.epoch, await self.peers.summaries()
        summaries[own] = self.service.summary()
        return [
            {
                "name": node.name,
                "epoch": node.epoch,
                "state": node.state,
                "this": node.epoch == own,
                "lease_left_s": round(node.left_s, 1),
                "version": details_of(node).version or None,
                "answers": node.epoch in summaries,
                "problems": [],
                **{key: value for key, value in summaries.get(node.epoch, {}).items() if key != "at"},
            }
            for node in self.membership.nodes
            if node.state != "dead"
        ]


class _Daemon(Protocol):
    """The parts of the daemon that a node needs."""

    @property
    def router(self) -> Router: ...

    @property
    def principal_limits(self) -> PrincipalLimits: ...

    @property
    def connections(self) -> int: ...

    @property
    def view(self) -> LiveDaemonView: ...

    @property
    def metrics(self) -> Metrics: ...

    @property
    def sources(self) -> SourceManager: ...


def open_cluster(
    store: ClusterPort | None, settings: Settings, name: str, daemon: Callable[[], _Daemon]
) -> ClusterNode | None:
    """Returns this daemon as a node of its cluster; None if it shares its database with no other daemon.

    Raises:
        SettingsError: as raised by ``ClusterNode``.
    """
    if store is None:
        return None
    service = PeerService(
        lambda: daemon().router,
        lambda: daemon().connections,
        lambda: daemon().view.health(LOCAL)["problems"],
        lambda: daemon().metrics.render(),  # noqa: PLW0108 - the daemon is made later
    )

    def budgets() -> Iterable[Budget]:
        return (*daemon().principal_limits.budgets, *daemon().router.agent_budgets.all)

    return ClusterNode(store, settings, name, service, budgets, lambda: daemon().sources)


async def _attempt(writing: Awaitable[None], what: str) -> None:
    """Attempts a write at shutdown. If it fails, the other nodes wait until the lease ends."""
    try:
        async with asyncio.timeout(_LAST_WRITE_S):
            await writing
    except (StoreError, TimeoutError) as error:
        _log.warning(f"{what} cannot be written", reason=str(error) or "no response")


def peer_secret(settings: Settings) -> SecretStr:
    """Returns the secret that all nodes share.

    Raises:
        SettingsError: its file cannot be read, or has no usable secret.
    """
    if settings.cluster_secret is not None:
        return settings.cluster_secret
    path = settings.cluster_secret_file
    if path is None:
        raise SettingsError("store: needs cluster_secret or cluster_secret_file")
    try:
        secret = path.read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise SettingsError(f"cluster_secret_file: {path} cannot be read ({error.strerror})") from None
    if not USABLE_TOKEN.fullmatch(secret):
        raise SettingsError(
            f"cluster_secret_file: {path} must have one line of {MIN_TOKEN_CHARS} printable ASCII characters or more"
        )
    return SecretStr(secret)


def _tls(certificate: Path | None) -> ssl.SSLContext | None:
    """A TLS context that trusts the system's certificates and this node's, which all nodes may share."""
    if certificate is None:
        return None
    context = ssl.create_default_context()
    context.load_verify_locations(certificate)
    return context
