"""The served registry over HTTP: the predecessor's routes with its bodies and answers, and what was missing there."""

import json
from typing import Any

import pytest
from tests.daemon.app_requests import call
from tests.simulated_daemon import TOKEN
from toold.agent_registry import FetchedAgent, RegisteredAgent, RegistryClient, after_fetch, read_registry
from toold.agent_registry.registry_client import AbsentAgent, UnchangedAgent
from toold.protocol.tool_call import LOCAL

from .conftest import RegistryPort

pytestmark = pytest.mark.asyncio(loop_scope="session")

PIPE = {
    "name": "Pipe Line",
    "description": "Looks and writes.",
    "execution_type": "sequential",
    "roles": [
        {"name": "researcher", "prompt_inline": "Look."},
        {"name": "writer", "prompt_ref": "w"},
    ],
}
"""The documented example of POST /agents."""


def nested(levels: int) -> dict[str, Any]:
    """An object within an object, and so on."""
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def answering(name: str, text: str) -> dict[str, Any]:
    """An agent whose model answers ``text``."""
    prompt = f"Answer. [[sim:script={json.dumps([{'text': text}])}]]"
    return {
        "name": name,
        "description": f"Answers {text}.",
        "execution_type": "single",
        "roles": [{"name": "only", "prompt_inline": prompt}],
    }


async def test_the_documented_bodies_get_the_documented_answers(port: RegistryPort) -> None:
    """Skills, tools, rag configurations and agents are created, listed, read, changed and deleted as in the
    predecessor, below the prefix and at the root."""
    client = port.client
    skill = {"id": "doc-skill", "name": "Find", "description": "Finds papers.", "tags": ["t"], "examples": ["find it"]}
    full = {**skill, "metadata": {}}
    assert await client.ok("POST", "/skills", skill) == {"status": "created", "skill": full}
    assert await client.ok("GET", "/registry/skills/doc-skill") == full
    tool = {"id": "doc-tool", "name": "Search", "description": "Searches.", "provider": "mcp", "mcp_server": "papers"}
    made = await client.ok("POST", "/registry/tools", {**tool, "mcp_server_url": "https://papers.example/mcp"})
    assert made["tool"]["active"] is True
    rag = {"id": "doc-rag", "name": "Docs", "rag_type": "vector_store"}
    assert (await client.ok("POST", "/rag", rag))["rag_config"]["chunk_size"] == 1000
    ids = {"skill_ids": ["doc-skill", "doc-skill"], "tool_ids": ["doc-tool"], "rag_ids": ["doc-rag"], "tags": ["doc"]}
    created = await client.ok("POST", "/agents", {**PIPE, **ids})
    agent_id, card = created["agent_id"], created["agent"]
    assert created["status"] == "created"
    assert await client.ok("GET", f"/agents/{agent_id}") == card
    assert card["skills"] == [full]
    assert card["capabilities"]["artifacts"] is True
    assert card["default_input_modes"] == ["text"]
    config = card["runtime_config"]
    assert (config["execution_type"], config["permission_mode"]) == ("sequential", "bypassPermissions")
    assert config["roles"][1] == {
        "name": "writer", "prompt_ref": "w", "prompt_inline": None, "tools": [], "max_turns": 10, "model": None,
        "metadata": {},
    }  # fmt: skip
    for query in ("skill=find", "tool=doc-tool", "tag=DOC", "agent_type=general&tag=doc"):
        assert await client.ok("GET", f"/agents?{query}") == {"agents": [card], "count": 1}
    assert (await client.ok("GET", "/agents?skill=nothing"))["count"] == 0
    url = "https://pipe.example/"
    patched = await client.ok("PATCH", f"/agents/{agent_id}/url", {"url": url})
    assert patched == {"status": "updated", "agent_id": agent_id, "url": url}
    assert (await client.ok("GET", f"/agents/{agent_id}"))["url"] == url
    assert await client.refused("DELETE", "/skills/doc-skill") == (
        409,
        f"skill 'doc-skill' is used by agent {agent_id!r}; change them first",
    )
    assert await client.ok("DELETE", f"/agents/{agent_id}") == {"status": "deleted", "agent_id": agent_id}
    assert (await client.refused("GET", f"/agents/{agent_id}"))[0] == 404
    assert await client.ok("DELETE", "/skills/doc-skill") == {"status": "deleted", "skill_id": "doc-skill"}
    assert await client.ok("DELETE", "/rag/doc-rag") == {"status": "deleted", "rag_id": "doc-rag"}
    servers = await client.ok("GET", "/mcp-servers")
    assert [server["name"] for server in servers["mcp_servers"]] == ["toold", "papers"]
    await client.ok("PATCH", "/tools/doc-tool", {"active": False})
    assert (await client.ok("GET", "/mcp-servers"))["count"] == 1
    assert "echo" in {tool["id"] for tool in (await client.ok("GET", "/builtin-tools"))["tools"]}


async def test_every_field_changes_and_what_is_sent_back_changes_nothing(port: RegistryPort) -> None:
    """PUT replaces all fields, the runtime configuration too; PATCH those that are sent; and an answer can be put back
    as it is, without a new version."""
    client = port.client
    agent_id = (await client.ok("POST", "/agents", PIPE))["agent_id"]
    loop = {
        "name": "Looper",
        "description": "Loops.",
        "execution_type": "loop",
        "max_iterations": 3,
        "stop_when": "answer contains done",
        "roles": [{"name": "one", "prompt_inline": "Go.", "tools": [{"id": "echo", "active": True}], "max_turns": 4}],
    }
    assert await client.ok("PUT", f"/agents/{agent_id}", loop) == {"status": "updated", "agent_id": agent_id}
    first = await client.ask("GET", f"/agents/{agent_id}")
    config = first.json()["runtime_config"]
    assert (config["execution_type"], config["max_iterations"]) == ("loop", 3)
    assert config["roles"][0]["tools"] == [{"id": "echo", "active": True}]
    back = await client.ask("PUT", f"/agents/{agent_id}", first.json())
    assert (back.status_code, back.headers["etag"]) == (200, first.headers["etag"])
    await client.ok("PATCH", f"/agents/{agent_id}", {"runtime_config": {"max_iterations": 7}, "owner": "me"})
    patched = await client.ok("GET", f"/agents/{agent_id}")
    assert (patched["runtime_config"]["max_iterations"], patched["owner"]) == (7, "me")
    assert patched["runtime_config"]["roles"] == config["roles"]
    await client.ok("PATCH", f"/agents/{agent_id}", {"owner": None})
    assert (await client.ok("GET", f"/agents/{agent_id}"))["owner"] is None


async def test_entity_tags_guard_reads_and_writes(port: RegistryPort) -> None:
    """304 for an unchanged entry, 412 for a change of another version, which then changes nothing."""
    client = port.client
    agent_id = (await client.ok("POST", "/agents", PIPE))["agent_id"]
    etag = (await client.ask("GET", f"/agents/{agent_id}")).headers["etag"]
    assert (await client.ask("GET", f"/agents/{agent_id}", if_none_match=etag)).status_code == 304
    changed = await client.ask("PATCH", f"/agents/{agent_id}", {"team": "a"}, if_match=etag)
    assert changed.status_code == 200
    assert (await client.ask("GET", f"/agents/{agent_id}", if_none_match=etag)).status_code == 200
    for method, path, body in [("PUT", "", PIPE), ("PATCH", "/url", {"url": ""}), ("DELETE", "", None)]:
        status, detail = await client.refused(method, f"/agents/{agent_id}{path}", body, if_match=etag)
        assert (status, changed.headers["etag"] in detail) == (412, True)
    assert (await client.ok("GET", f"/agents/{agent_id}"))["team"] == "a"
    await client.ok("DELETE", f"/agents/{agent_id}", if_match=changed.headers["etag"])


@pytest.mark.parametrize(
    ("body", "place", "words"),
    [
        ({"description": "x"}, ["name"], "is required"),
        ({**PIPE, "descripton": "x"}, ["descripton"], "did you mean 'description'?"),
        ({**PIPE, "execution_type": "mesh"}, ["execution_type"], "must be one of single, sequential"),
        ({**PIPE, "execution_type": "coordinator"}, ["coordinator_role"], "is required for execution_type"),
        ({**PIPE, "execution_type": "custom"}, ["execution_type"], "cannot name code"),
        ({**PIPE, "roles": [{"name": "a", "max_turns": 51}]}, ["roles", 0, "max_turns"], "must be 50 or less"),
        ({**PIPE, "roles": [{"name": "a", "colour": 1}]}, ["roles", 0, "colour"], "is not a field"),
        ({**PIPE, "roles": [{"name": "a", "tools": [{}]}]}, ["roles", 0, "tools", 0], "needs either name"),
        ({**PIPE, "roles": [{"name": "a"}, {"name": "a"}]}, ["roles"], "two roles named 'a'"),
        ({**PIPE, "worker_roles": ["writer"]}, ["worker_roles"], "belongs to execution_type coordinator"),
        ({**PIPE, "skill_ids": ["x", "no-skill"]}, ["skill_ids", 1], "there is no skill 'no-skill'"),
        ({**PIPE, "url": "ftp://x"}, ["url"], ""),
        ({**PIPE, "runtime_config": {"execution_type": "loop"}}, ["execution_type"], "send one of them"),
        ([], [], "must be a JSON object"),
        ({**PIPE, "metadata": nested(400)}, [], "nested too deeply"),
        ({f"k{number}": 1 for number in range(2000)}, [], "must have at most 1,000 fields, and has 2,000"),
        (list(range(100_001)), [], "too many values"),
    ],
)
async def test_invalid_agents_are_refused_by_field(
    port: RegistryPort, body: Any, place: list[str | int], words: str
) -> None:
    """422 with the place of the field and what is wrong, in the form of FastAPI; nothing is stored."""
    before = (await port.client.ok("GET", "/agents"))["count"]
    status, detail = await port.client.refused("POST", "/agents", body)
    assert status == 422
    found = [each for each in detail if each["loc"][: len(place) + 1] == ["body", *place]]
    assert found, detail
    assert words in " ".join(each["msg"] for each in found)
    assert (await port.client.ok("GET", "/agents"))["count"] == before


async def test_other_bad_requests_say_what_is_wrong(port: RegistryPort) -> None:
    """Unknown paths, methods, parameters, ids and bodies that are not JSON."""
    client = port.client
    assert await client.refused("GET", "/registry/skils") == (
        404, "/registry/skils does not exist; did you mean 'skills'?",
    )  # fmt: skip
    assert await client.refused("DELETE", "/registry/skills") == (405, "/registry/skills accepts GET, POST only")
    assert (await client.refused("GET", "/registry/skills/none"))[1] == "there is no skill 'none'"
    status, detail = await client.refused("GET", "/registry/agents?colour=red")
    assert (status, detail[0]["loc"]) == (422, ["query", "colour"])
    for query in ("limit=0", "limit=x", "offset=-1", "cursor=%21", "cursor=YWJj"):
        assert (await client.refused("GET", f"/registry/agents?{query}"))[0] == 422
    skill = {"id": "twice", "name": "n", "description": "d"}
    await client.ok("POST", "/skills", skill)
    assert await client.refused("POST", "/skills", skill) == (400, "the skill 'twice' already exists")
    assert (await client.refused("PUT", "/skills/twice", {**skill, "id": "other"}))[0] == 422
    assert (await client.refused("POST", "/skills", {**skill, "id": "a/b"}))[0] == 422
    headers = {"authorization": f"Bearer {client.token}", "content-type": "application/json"}
    broken = await client.http.post("/registry/skills", content=b'{"id": ', headers=headers)
    assert (broken.status_code, broken.json()["detail"][0]["type"]) == (422, "json_invalid")
    plain = await client.http.post("/registry/skills", content=b"{}", headers={**headers, "content-type": "text/plain"})
    assert plain.status_code == 415


async def test_lists_are_read_in_pages(port: RegistryPort) -> None:
    """With limit, a list has a cursor, which continues after an entry deleted meanwhile; without, all of it."""
    client = port.client
    for number in range(5):
        await client.ok("POST", "/skills", {"id": f"page-{number}", "name": "n", "description": "d", "tags": ["paged"]})
    whole = await client.ok("GET", "/skills?tag=paged")
    assert set(whole) == {"skills", "count"}
    first = await client.ok("GET", "/skills?tag=paged&limit=2")
    assert [skill["id"] for skill in first["skills"]] == ["page-0", "page-1"]
    assert (first["count"], first["total"]) == (2, 5)
    await client.ok("DELETE", "/skills/page-1")
    rest = await client.ok("GET", f"/skills?tag=paged&limit=10&cursor={first['next_cursor']}")
    assert [skill["id"] for skill in rest["skills"]] == ["page-2", "page-3", "page-4"]
    assert rest["next_cursor"] is None
    assert (await client.ok("GET", "/skills?tag=paged&limit=1&offset=3"))["skills"][0]["id"] == "page-4"


async def test_prompts_have_versions(port: RegistryPort) -> None:
    """Each change makes a version, the newest is answered, and the first stays readable."""
    client = port.client
    await client.ok("POST", "/prompts", {"id": "greet", "template": "Hello {{name}}"})
    await client.ok("PUT", "/prompts/greet", {"template": "Good day {{name}}"})
    newest = await client.ok("GET", "/prompts/greet")
    assert (newest["template"], newest["version"], newest["name"]) == ("Good day {{name}}", 2, "greet")
    assert (await client.ok("GET", "/prompts/greet/versions/1"))["template"] == "Hello {{name}}"
    await client.ok("PUT", "/prompts/greet", {"template": "Good day {{name}}"})
    assert (await client.ok("GET", "/prompts/greet/versions"))["count"] == 2
    assert (await client.refused("GET", "/prompts/greet/versions/9"))[0] == 404
    await client.ok("DELETE", "/prompts/greet")
    assert (await client.refused("GET", "/prompts/greet"))[0] == 404


async def test_agents_of_the_registry_are_hosted_at_once(port: RegistryPort) -> None:
    """A new agent can be called when its creation is answered, and a changed one with its prompt of the registry; a
    deleted one is gone."""
    client, daemon = port.client, port.daemon
    agent_id = (await client.ok("POST", "/agents", answering("Answerer", "first")))["agent_id"]
    assert (await call(daemon, "Answerer", token=TOKEN, prompt="Go"))["structured"]["answer"] == "first"
    script = json.dumps([{"text": "second"}])
    await client.ok("POST", "/prompts", {"id": "shared", "template": f"Answer. [[sim:script={script}]]"})
    roles = [{"name": "only", "prompt_ref": "shared"}]
    await client.ok("PATCH", f"/agents/{agent_id}", {"roles": roles})
    assert (await call(daemon, "Answerer", token=TOKEN, prompt="Go"))["structured"]["answer"] == "second"
    config = await client.ok("GET", f"/agents/{agent_id}/runtime-config")
    assert (config["agent_id"], config["roles"][0]["prompt_ref"]) == (agent_id, "shared")
    status = await daemon.view.status(LOCAL, recent=0, days=0)
    assert [each["state"] for each in status["registry"]["agents"] if each["id"] == agent_id] == ["current"]
    await client.ok("DELETE", f"/agents/{agent_id}")
    assert "Answerer" not in daemon.registry


async def test_roles_get_the_tools_of_the_registry_that_are_active(port: RegistryPort) -> None:
    """A role without tools has those of its agent; a tool that is not active is left out, at once."""
    client = port.client
    await client.ok("POST", "/tools", {"id": "echo", "name": "Echo", "description": "Echoes."})
    body = {**answering("Tooled", "x"), "tool_ids": ["echo"]}
    agent_id = (await client.ok("POST", "/agents", body))["agent_id"]

    async def tools() -> Any:
        return (await client.ok("GET", f"/agents/{agent_id}/runtime-config"))["roles"][0]["tools"]

    assert await tools() == [{"name": "echo"}]
    resolved = (await call(port.daemon, "Tooled", token=TOKEN, prompt="Go", dry_run=True))["structured"]
    assert resolved["roles"]["only"]["functions"] == ["echo"]
    await client.ok("PATCH", "/tools/echo", {"active": False})
    assert await tools() == []
    resolved = (await call(port.daemon, "Tooled", token=TOKEN, prompt="Go", dry_run=True))["structured"]
    assert resolved["roles"]["only"]["functions"] == []


async def test_skills_and_collections_of_a_registered_agent_are_used(port: RegistryPort) -> None:
    """The card of a public agent has its skills, for anyone and without a restart; its roles search the collections
    that its rag configurations name, and the answer says which ones the daemon does not have."""
    client = port.client
    skill = {"id": "card-skill", "name": "Bake", "description": "Bakes bread.", "examples": ["Bake a loaf"]}
    await client.ok("POST", "/skills", skill)
    for entry_id, base in (("rag-1", "manual"), ("rag-2", None)):
        rag = {"id": entry_id, "name": entry_id, "rag_type": "knowledge_base", "knowledge_base_id": base}
        await client.ok("POST", "/rag", rag)
    body = {**answering("Baker", "bread"), "skill_ids": ["card-skill"], "rag_ids": ["rag-1", "rag-2"]}
    agent_id = (await client.ok("POST", "/agents", body))["agent_id"]
    card = "/agents/Baker/.well-known/agent-card.json"
    assert (await port.unknown.ask("GET", card)).status_code == 401
    await client.ok("PATCH", f"/agents/{agent_id}", {"is_public": True})
    await client.ok("PATCH", "/skills/card-skill", {"description": "Bakes rye bread."})
    [shown] = (await port.unknown.ok("GET", card))["skills"]
    assert shown == {**skill, "description": "Bakes rye bread.", "tags": ["agent"]}
    resolved = (await call(port.daemon, "Baker", token=TOKEN, prompt="Go", dry_run=True))["structured"]
    assert resolved["roles"]["only"]["functions"] == ["knowledge_manual"]
    answered = (await call(port.daemon, "Baker", token=TOKEN, prompt="Go"))["structured"]
    [warning] = answered["warnings"]
    assert (answered["answer"], "'rag-2'" in warning, "[knowledge.rag-2]" in warning) == ("bread", True, True)


async def test_the_rights_of_tokens(port: RegistryPort) -> None:
    """Without a token, health only; a named token reads; the operator right and the right to change the registry
    write. There is no token dev, and no token acts for a user without the right to."""
    rights = [(port.client, 200, 200), (port.editor, 200, 200), (port.guest, 200, 403), (port.unknown, 401, 401)]
    for client, read, written in rights:
        assert (await client.ask("GET", "/registry/health")).status_code == 200
        assert (await client.ask("GET", "/registry/agents")).status_code == read
        skill = {"id": f"by-{rights.index((client, read, written))}", "name": "n", "description": "d"}
        assert (await client.ask("POST", "/registry/skills", skill)).status_code == written
        for path in ("/registry/agents", "/skills"):
            assert (await client.ask("GET", path, x_user_id="carol")).status_code == (401 if read == 401 else 403)
    refused = await port.client.http.get("/agents", headers={"authorization": "Bearer dev"})
    assert refused.status_code == 401
    health = await port.unknown.ok("GET", "/registry/health")
    assert (health["status"], health["service"]) == ("healthy", "agent-registry-api")
    assert health["storage"]["counts"]["skills"] >= 1


async def test_the_client_of_registries_reads_agents(port: RegistryPort, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another daemon gets the definition, an unchanged one by its entity tag, and says where it hosts the agent; A2A
    keeps its paths."""
    client = port.client
    agent_id = (await client.ok("POST", "/agents", answering("Remote", "x")))["agent_id"]
    monkeypatch.setenv("REGISTRY_KEY", TOKEN)
    url = f"{client.http.base_url}/registry"
    table = {"url": url, "agents": [agent_id], "allow_private": True, "key": {"env": "REGISTRY_KEY"}}
    settings = read_registry(table)
    assert settings is not None
    other = RegistryClient(settings)
    try:
        fetched = await other.fetch(agent_id, None)
        assert isinstance(fetched, FetchedAgent)
        known = after_fetch(RegisteredAgent(settings.agents[0]), fetched, settings, 0.0)
        assert known.latest is not None
        assert known.latest.agent.name == "Remote"
        assert isinstance(await other.fetch(agent_id, fetched.etag), UnchangedAgent)
        assert isinstance(await other.fetch("none", None), AbsentAgent)
        assert await other.set_url(agent_id, "https://agents.example/agents/Remote/") is None
    finally:
        await other.close()
    assert (await client.ok("GET", f"/agents/{agent_id}"))["url"] == "https://agents.example/agents/Remote/"
    assert (await client.ok("GET", "/agents/Remote/.well-known/agent-card.json"))["name"] == "Remote"
