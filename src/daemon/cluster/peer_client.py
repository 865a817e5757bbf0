"""Asks the other nodes of the cluster about their running calls, and cancels calls there."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import httpx
import msgspec
import structlog

from ...protocol.tool_call import Principal
from ...store import NodeRow, StoreError
from ...tools import CallInfo
from .membership import Membership
from .node_address import address_of, is_refused
from .peer_api import PEER_PATH
from .peer_key import PEER_HEADER, PeerKey

_TIMEOUT_S: Final = 3.0
"""A node answers within milliseconds. A node that is stopped delays the answer of the others by at most this time."""

_log = structlog.get_logger("toold.cluster")


class PeerClient:
    """Requests to the other nodes. A node that does not answer counts as one without the call."""

    def __init__(self, membership: Membership, key: PeerKey) -> None:
        self._membership = membership
        self._key = key
        self._cancelling: set[asyncio.Task[Any]] = set()
        self._http = httpx.AsyncClient(timeout=_TIMEOUT_S, trust_env=False)

    async def close(self) -> None:
        """Closes the connections to the other nodes."""
        await self._http.aclose()

    async def find_call(self, node: NodeRow | None, principal: Principal, call_id: str) -> CallInfo | None:
        """Implements ``PeerCalls.find_call``."""
        query = {"call_id": call_id, "principal": principal.name}
        for _, answer in await self._ask_all("/calls/find", query, self._candidates(node, call_id)):
            info = msgspec.json.decode(answer, type=CallInfo)
            if info.state != "unknown":
                return info
        return None

    async def cancel(self, node: NodeRow | None, principal: Principal | None, call_id: str) -> bool:
        """Implements ``PeerCalls.cancel``; without a principal, for the operator."""
        query = {"call_id": call_id, "principal": None if principal is None else principal.name}
        answers = await self._ask_all("/calls/cancel", query, self._candidates(node, call_id))
        return any(msgspec.json.decode(answer)["cancelled"] for _, answer in answers)

    def cancel_request(self, request_id: object, label: str, principal: str) -> None:
        """Cancels an MCP client's request, by its JSON-RPC id, at the node where it runs. Does not wait for it."""
        query = {"request_id": request_id, "label": label, "principal": principal}
        task = asyncio.create_task(self._ask_all("/requests/cancel", query, self._membership.peers))
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)

    async def running_calls(self) -> list[dict[str, Any]]:
        """Returns the rows of the calls that run at the other nodes, each with its ``node``."""
        rows = []
        for node, answer in await self._ask_all("/calls", {}, self._membership.peers):
            rows += [{**row, "node": node.name} for row in msgspec.json.decode(answer)["running"]]
        return rows

    async def summaries(self) -> dict[str, dict[str, Any]]:
        """Returns the figures of the other nodes that answer, by their epochs."""
        answers = await self._ask_all("/summary", {}, self._membership.peers)
        return {node.epoch: msgspec.json.decode(answer) for node, answer in answers}

    def _candidates(self, node: NodeRow | None, call_id: str) -> Sequence[NodeRow]:
        """The nodes that may run a call: the one that created it, by the epoch in its id; if that is dead, any node may
        have adopted the call."""
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

    async def _bury(self, node: NodeRow) -> None:
        """Nothing listens at the node's address: another node takes its detached calls over without waiting."""
        with contextlib.suppress(StoreError):
            await self._membership.bury(node, "unreachable")

    async def _ask(self, node: NodeRow, path: str, query: Mapping[str, Any]) -> bytes | None:
        address = address_of(node)
        if address is None:
            return None
        body = msgspec.json.encode(query)
        signature = self._key.sign(node.epoch, PEER_HEADER, path, body.decode())
        try:
            answer = await self._http.post(
                f"{address.http.rstrip('/')}{PEER_PATH}{path}", content=body, headers={PEER_HEADER: signature}
            )
        except httpx.HTTPError as error:
            _log.warning("a node does not answer", node=node.name, reason=type(error).__name__)
            if is_refused(error):
                await self._bury(node)
            return None
        if answer.status_code != 200:
            _log.warning("a node refuses a request", node=node.name, status=answer.status_code)
            return None
        return answer.content
