"""What agents say of themselves over A2A: public cards, skills and extended cards. Refusals before an operation."""

import httpx
import pytest

from .conftest import A2APort

pytestmark = pytest.mark.asyncio(loop_scope="module")

HAIKU = {
    "id": "haiku",
    "name": "haiku",
    "description": "Writes haiku.",
    "tags": ["poem"],
    "examples": ["A haiku about rain"],
}
CARD = "/.well-known/agent-card.json"


async def test_the_card_of_a_public_agent_needs_no_token(port: A2APort) -> None:
    """Without a token, a caller reads the cards of public agents alone, and gets 401 for all else, also for a card with
    a wrong token.
    """
    http = port.client.http
    listed = (await http.get("/agents")).json()
    assert [card["name"] for card in listed["agents"]] == ["poet"]
    for path in (CARD, "/.well-known/agent.json"):
        public = await http.get(f"/agents/poet{path}")
        assert public.json() == (await port.client.get(f"/agents/poet{path}")).json()
        assert (await http.get(f"/agents/helper{path}")).status_code == 401
        assert (await http.get(f"/agents/nobody{path}")).status_code == 401
        assert (await http.get(path)).status_code == 401
    wrong = await http.get(f"/agents/poet{CARD}", headers={"authorization": "Bearer wrong"})
    assert wrong.status_code == 401
    assert (await http.post("/agents/poet/", json={})).status_code == 401
    assert (await http.get("/agents/poet/extendedAgentCard")).status_code == 401
    assert (await port.guest.get(f"/agents/poet{CARD}")).status_code == 404  # beyond its toolset


async def test_skills_and_the_extended_card(port: A2APort) -> None:
    """The card has the skills of the definition, and the extended card also those that are marked as such, in both
    versions and bindings.
    """
    card = (await port.client.get(f"/agents/poet{CARD}")).json()
    assert card["skills"] == [HAIKU]
    assert card["capabilities"]["extendedAgentCard"] is True
    extended = (await port.client.rpc("poet", "GetExtendedAgentCard", {}))["result"]
    assert [skill["name"] for skill in extended["skills"]] == ["haiku", "Odes"]
    assert {**extended, "skills": [HAIKU]} == card
    by_path = await port.client.get("/agents/poet/extendedAgentCard", **{"A2A-Version": "1.0"})
    assert by_path.json() == extended
    old = (await port.client.rpc("poet", "agent/getAuthenticatedExtendedCard", {}, "0.3"))["result"]
    assert (old["supportsAuthenticatedExtendedCard"], old["skills"]) == (True, extended["skills"])
    none = (await port.client.get(f"/agents/helper{CARD}")).json()
    assert none["capabilities"]["extendedAgentCard"] is False
    assert none["skills"] == [{"id": "helper", "name": "helper", "description": "Helps.", "tags": ["agent"]}]


async def test_refusals_have_the_form_of_their_binding(port: A2APort) -> None:
    """Before the operation is known, a path of HTTP+JSON is refused as google.rpc.Status with ErrorInfo, and one of
    JSON-RPC by an error of JSON-RPC.
    """
    http, token = port.client.http, {"authorization": f"Bearer {port.client.token}"}
    send = "/agents/helper/message:send"

    def said(answer: httpx.Response) -> tuple[int, str, str]:
        error = answer.json()["error"]
        assert error["code"] == answer.status_code
        info = error["details"][0]
        assert info["@type"].endswith("ErrorInfo")
        return error["code"], error["status"], info["reason"]

    assert said(await http.post(send, json={})) == (401, "UNAUTHENTICATED", "UNAUTHORIZED")
    assert said(await http.get(send, headers=token)) == (405, "UNIMPLEMENTED", "INVALID_REQUEST")
    nobody = await http.post("/agents/nobody/message:send", json={}, headers=token)
    assert said(nobody) == (404, "NOT_FOUND", "NOT_FOUND")
    text = await http.post(send, content=b"x", headers={**token, "content-type": "text/plain"})
    assert said(text) == (415, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED")
    large = await http.post(send, content=b" " * 21_000_000, headers={**token, "content-type": "application/json"})
    assert said(large) == (413, "RESOURCE_EXHAUSTED", "INVALID_REQUEST")
    assert said(await http.get("/agents/helper/elsewhere", headers=token)) == (404, "NOT_FOUND", "NOT_FOUND")
    assert (await http.post("/agents/helper/", json={})).json()["error"]["code"] == -32600
