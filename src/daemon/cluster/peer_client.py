"""Asks the other nodes of the cluster about their running calls, and cancels calls there."""

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import httpx
import msgspec
import structlog

from ...protocol.tool_call import Principal
from ...store import NodeRow, StoreError, Suspicion
from ...tools import CallInfo
from ..observability.peer_calls import PeerActivity
from .membership import Membership
from .node_address import address_of, is_refused
from .peer_api import PEER_PATH
from .peer_key import PEER_HEADER, PeerKey

ANSWER_S: Final = 3.0
"""The timeout of a request. Nodes answer within milliseconds; a stopped node delays an answer by this time."""
RECENT_S: Final = 1.0
"""The maximum age of the calls that pages of the dashboard show; the pages are rendered four times per second."""

CHECK_S: Final = 1.0
"""The shortest time between two checks of whether a node is alive."""

_log = structlog.get_logger("toold.cluster")


class PeerClient:
    """Sends requests to the other nodes. A node that does not answer counts as a node without the call."""

    def __init__(self, membership: Membership, key: PeerKey) -> None:
        self._membership = membership
        self._key = key
        self._cancelling: set[asyncio.Task[Any]] = set()
        self._http = httpx.AsyncClient(timeout=ANSWER_S, trust_env=False)
        self._check_at: dict[str, float] = {}  # the time at which the node of an epoch is checked again
        self._recent = PeerActivity()
        self._ask_at = 0.0  # the time at which the other nodes are asked for their calls again
        self._asking: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Closes the connections to the other nodes."""
        if self._asking is not None:
            self._asking.cancel()
        await self._http.aclose()

    async def find_call(self, node: NodeRow | None, principal: Principal, call_id: str) -> CallInfo | None:
        """Implements ``PeerCalls.find_call``."""
        query = {"call_id": call_id, "principal": principal.name}
        answers = await self._ask_all("/calls/find", query, self._candidates(node, call_id))
        found = [msgspec.json.decode(answer, type=CallInfo) for _, answer in answers]
        return next((info for info in found if info.state != "unknown"), found[0] if found else None)

    async def cancel(self, node: NodeRow | None, principal: Principal | None, call_id: str) -> bool:
        """Implements ``PeerCalls.cancel``; without a principal, it cancels for the operator."""
        query = {"call_id": call_id, "principal": None if principal is None else principal.name}
        answers = await self._ask_all("/calls/cancel", query, self._candidates(node, call_id))
        return any(msgspec.json.decode(answer)["cancelled"] for _, answer in answers)

    async def check(self, epoch: str) -> None:
        """Declares a node dead if nothing listens at its address, or if it does not answer and has missed its
        heartbeats, so that its sessions and calls are free before its lease ends.
        """
        now = time.monotonic()
        node = self._membership.peer(epoch)
        if node is None or now < self._check_at.get(epoch, 0.0):
            return
        self._check_at = {other: at for other, at in self._check_at.items() if at > now} | {epoch: now + CHECK_S}
        await self._ask(node, "/summary", {})

    def cancel_request(self, request_id: object, label: str, principal: str) -> None:
        """Cancels an MCP client's request, by its JSON-RPC id, at the node where it runs. Does not wait for it."""
        query = {"request_id": request_id, "label": label, "principal": principal}
        task = asyncio.create_task(self._ask_all("/requests/cancel", query, self._membership.peers))
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)

    @property
    def own_name(self) -> str:
        return next((node.name for node in self._membership.nodes if node.epoch == self._membership.epoch), "")

    async def running_calls(self) -> PeerActivity:
        """Implements ``PeerView.running_calls``."""
        peers = self._membership.peers
        rows, connections, answered = [], 0, set()
        for node, answer in await self._ask_all("/calls", {}, peers):
            found = msgspec.json.decode(answer)
            rows += [{**row, "node": node.name} for row in found["running"]]
            connections += found.get("connections", 0)
            answered.add(node.epoch)
        return PeerActivity(rows, connections, [node.name for node in peers if node.epoch not in answered])

    def recent_calls(self) -> PeerActivity:
        """Implements ``PeerView.recent_calls``."""
        if self._asking is None and time.monotonic() >= self._ask_at:
            self._asking = asyncio.create_task(self._refresh(), name="calls of other nodes")
        return self._recent

    async def _refresh(self) -> None:
        try:
            self._recent = await self.running_calls()
        finally:
            self._ask_at, self._asking = time.monotonic() + RECENT_S, None

    async def metrics(self) -> tuple[dict[str, str], list[str]]:
        """Returns the pages of metrics of the other nodes that answer, by their names, and the names of the others."""
        peers = self._membership.peers
        answers = await self._ask_all("/metrics", {}, peers)
        pages = {node.name: str(msgspec.json.decode(answer)["page"]) for node, answer in answers}
        return pages, [node.name for node in peers if node.name not in pages]

    async def summaries(self) -> dict[str, dict[str, Any]]:
        """Returns the figures of the other nodes that answer, by their epochs."""
        answers = await self._ask_all("/summary", {}, self._membership.peers)
        return {node.epoch: msgspec.json.decode(answer) for node, answer in answers}

    def _candidates(self, node: NodeRow | None, call_id: str) -> Sequence[NodeRow]:
        """The nodes that may run a call: the node that created it, whose epoch is in its id; if that node is dead, all
        nodes, because any of them may have adopted the call.
        """
        epoch = call_id.partition("-")[0]
        known = node or self._membership.peer(epoch)
        if known is not None:
            return [known]
        return [] if epoch == self._membership.epoch else self._membership.peers

    async def _ask_all(
        self, path: str, query: Mapping[str, Any], nodes: Sequence[NodeRow]
    ) -> Sequence[tuple[NodeRow, bytes]]:
        answers = await asyncio.gather(*(self._ask(node, path, query) for node in nodes))
        return [(node, answer) for node, answer in zip(nodes, answers, strict=True) if answer is not None]

    async def _declare_dead(self, node: NodeRow, suspicion: Suspicion) -> None:
        """Declares a node dead if the database permits it, so that another node adopts its detached calls without
        delay.
        """
        with contextlib.suppress(StoreError):
            await self._membership.declare_dead(node, suspicion)

    async def _ask(self, node: NodeRow, path: str, query: Mapping[str, Any]) -> bytes | None:
        try:
            return await ask_peer(self._http, self._key, node, path, query)
        except PeerSilentError as error:
            _log.warning("a node does not answer", node=node.name, reason=str(error))
            if error.suspicion != "none":
                await self._declare_dead(node, error.suspicion)
            return None


class PeerSilentError(Exception):
    """A node has not answered a request, or has refused it; the message says why. ``suspicion`` says what this shows
    about the node.
    """

    def __init__(self, message: str, suspicion: Suspicion = "none") -> None:
        super().__init__(message)
        self.suspicion: Final = suspicion


async def ask_peer(http: httpx.AsyncClient, key: PeerKey, node: NodeRow, path: str, query: Mapping[str, Any]) -> bytes:
    """Sends a signed request to a path below ``/peer`` of a node; returns the answer.

    Raises:
        PeerSilentError: it does not answer, or refuses the request.
    """
    address = address_of(node)
    if address is None:
        raise PeerSilentError("it has announced no address")
    body = msgspec.json.encode(query)
    signature = key.sign(node.epoch, PEER_HEADER, path, body.decode())
    try:
        answer = await http.post(
            f"{address.http.rstrip('/')}{PEER_PATH}{path}", content=body, headers={PEER_HEADER: signature}
        )
    except httpx.HTTPError as error:
        raise PeerSilentError(type(error).__name__, _suspicion(error)) from None
    if answer.status_code == 403:
        raise PeerSilentError("it refuses the request: cluster_secret differs")
    if answer.status_code != 200:
        raise PeerSilentError(f"it refuses the request with HTTP {answer.status_code}")
    return answer.content


def _suspicion(error: httpx.HTTPError) -> Suspicion:
    if is_refused(error):
        return "unreachable"
    silent = httpx.ConnectError | httpx.ConnectTimeout | httpx.WriteTimeout | httpx.ReadTimeout
    return "silent" if isinstance(error, silent) else "none"
