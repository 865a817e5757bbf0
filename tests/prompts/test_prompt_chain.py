"""The order of the sources, servers that fail or hang, the last known good prompt, and the errors."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from structlog.testing import capture_logs
from tests.prompts.conftest import SHORT_S, Servers, litellm_answer, phoenix_answer
from tests.waiting import until
from toold.prompts import PromptChain, read_prompts
from toold.sources import MAX_REQUESTS_PER_SERVER
from toold.tools import PromptError, PromptQuery

ROLE = PromptQuery("writer", ref="eo-writer")
ChainOf = Callable[..., PromptChain]
NEXT = {"phoenix": "litellm", "litellm": "registry", "registry": "phoenix"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "prompts").mkdir()
    return tmp_path / "prompts"


async def test_the_order_is_inline_phoenix_litellm_registry_file(
    servers: Servers, chain_of: ChainOf, folder: Path
) -> None:
    """The first source that has the prompt wins, and the next one answers when it has none, without a warning."""
    chain = chain_of()
    servers.all_have("eo-writer")
    (folder / "writer.md").write_text("from a file")
    inline = await chain.resolve(PromptQuery("writer", inline="from the role", ref="eo-writer"))
    assert (inline.text, inline.source, servers.phoenix.asked) == ("from the role", "inline", [])
    seen = []
    for server in (servers.phoenix, servers.litellm, servers.registry, None):
        prompt = await chain.resolve(ROLE)
        seen.append((prompt.source, prompt.text, prompt.model, prompt.warnings))
        if server is not None:
            server.answers.clear()
            (folder.parent / "kept").rename(folder.parent / f"kept-{prompt.source}")
    assert seen == [
        ("phoenix", "from phoenix", "kimi-k2", ()),
        ("litellm", "from litellm", "glm-4.6", ()),
        ("registry", "from registry", None, ()),
        ("file", "from a file", None, ()),
    ]


async def test_another_order(servers: Servers, chain_of: ChainOf) -> None:
    """Only the named sources are asked, in their order."""
    servers.all_have("eo-writer")
    prompt = await chain_of(order=["registry", "phoenix"]).resolve(ROLE)
    assert (prompt.source, servers.phoenix.asked, servers.litellm.asked) == ("registry", [], [])


async def test_phoenix_by_tag_and_by_latest(servers: Servers, chain_of: ChainOf) -> None:
    """The tag of the query comes first, then that of the settings; without the tag the latest version is used."""
    servers.phoenix.answers = {
        "/v1/prompts/a%2Fb/tags/staging": phoenix_answer("staged", "v7"),
        "/v1/prompts/a%2Fb/latest": phoenix_answer([{"type": "text", "text": "la"}, {"type": "text", "text": "st"}]),
    }
    chain = chain_of()
    staged = await chain.resolve(PromptQuery("writer", ref="a/b", tag="staging"))
    latest = await chain.resolve(PromptQuery("writer", ref="a/b"))
    assert (staged.text, staged.version, latest.text) == ("staged", "v7", "last")
    assert servers.phoenix.asked[1] == "/v1/prompts/a%2Fb/tags/production"


@pytest.mark.parametrize("name", ["phoenix", "litellm", "registry"])
async def test_a_server_that_hangs(name: str, servers: Servers, chain_of: ChainOf) -> None:
    """Its time limit ends the question, the next source answers, and a warning says so."""
    servers.all_have("eo-writer")
    server = getattr(servers, name)
    server.hangs = True
    prompt = await chain_of(order=[name, NEXT[name]], **{name: server.table(SHORT_S)}).resolve(ROLE)
    assert (prompt.source, prompt.warnings) == (NEXT[name], (f"{name}: 127.0.0.1 did not answer within {SHORT_S:g} s",))


UNUSABLE: list[tuple[Response, str]] = [
    (PlainTextResponse("down", 503), "it answered HTTP 503"),
    (JSONResponse({"detail": "key sk-secret"}, 401), "it answered HTTP 401: it refuses the key"),
    (PlainTextResponse("not json"), "its answer is not JSON"),
    (Response(b"[" * 200_000), "its answer is not JSON"),
    (JSONResponse([]), "its prompt cannot be used: the answer is not a JSON object"),
    (PlainTextResponse("x" * (9 * 1024**2)), "it sent more than 8 MiB"),
    (RedirectResponse("http://127.0.0.1:1/"), "it redirects (HTTP 307), which is refused; set url to the new location"),
]


@pytest.mark.parametrize("name", ["phoenix", "litellm", "registry"])
async def test_a_server_that_fails(name: str, servers: Servers, chain_of: ChainOf) -> None:
    """Whatever it answers, the next source is asked; the warning gives the reason, and quotes nothing of the answer."""
    servers.all_have("eo-writer")
    chain = chain_of(order=[name, NEXT[name]])
    for answer, reason in UNUSABLE:
        getattr(servers, name).failure = answer
        prompt = await chain.resolve(ROLE)
        assert (prompt.source, prompt.warnings) == (NEXT[name], (f"{name}: {reason}",))


async def test_a_server_that_is_not_there(servers: Servers, chain_of: ChainOf) -> None:
    """A refused connection and a forbidden address are reasons too."""
    servers.all_have("eo-writer")
    closed = {"url": "http://127.0.0.1:1", "allow_private": True}
    forbidden = {"url": servers.litellm.url}
    prompt = await chain_of(phoenix=closed, litellm=forbidden).resolve(ROLE)
    assert prompt.source == "registry"
    assert prompt.warnings == (
        "phoenix: 127.0.0.1 cannot be reached",
        "litellm: 127.0.0.1 is loopback; [prompts.litellm] allow_private can allow it",
    )
    assert servers.litellm.asked == []


async def test_last_known_good(servers: Servers, chain_of: ChainOf, folder: Path) -> None:
    """If no source has the prompt and a server fails, its last prompt is used, in another daemon too, with a warning;
    the variables are filled in again, and the default file comes after it."""
    (folder / "default.txt").write_text("You are an assistant.")
    servers.phoenix.answers["/v1/prompts/eo-writer/tags/production"] = phoenix_answer("Write about {{topic}}.", "v3")
    first = await chain_of().resolve(PromptQuery("writer", ref="eo-writer", variables={"topic": "law"}))
    servers.phoenix.failure = PlainTextResponse("", 500)
    kept = await chain_of().resolve(PromptQuery("writer", ref="eo-writer", variables={"topic": "tax"}))
    assert (first.text, kept.text, kept.source) == ("Write about law.", "Write about tax.", "phoenix")
    assert (kept.version, kept.model) == ("v3", "kimi-k2")
    failed, used = kept.warnings
    assert failed == "phoenix: it answered HTTP 500"
    assert used.startswith("phoenix: its last known good prompt is used, of 20")
    elsewhere = {**servers.phoenix.table(), "url": f"{servers.phoenix.url}/v1"}
    for settings, tag in (({}, "staging"), ({"phoenix": elsewhere}, None)):
        other = await chain_of(**settings).resolve(PromptQuery("writer", ref="eo-writer", tag=tag))
        assert (other.source, other.text) == ("file", "You are an assistant.")
    assert other.warnings[-1] == "file: no source has a prompt for the role; the default file is used"


async def test_a_deleted_prompt_is_not_used(servers: Servers, chain_of: ChainOf) -> None:
    """A prompt that Phoenix no longer has is gone; one that LiteLLM no longer has may be lost, and is used."""
    servers.all_have("eo-writer")
    for source in ("phoenix", "litellm"):
        await chain_of(order=[source]).resolve(ROLE)
    servers.phoenix.answers.clear()
    servers.litellm.answers.clear()
    with pytest.raises(PromptError, match=r"phoenix: it has no prompt 'eo-writer'$"):
        await chain_of(order=["phoenix"]).resolve(ROLE)
    lost = await chain_of(order=["litellm"]).resolve(ROLE)
    assert lost.text == "from litellm"
    assert lost.warnings[0].startswith("litellm: its last known good prompt is used")


async def test_a_kept_prompt_that_cannot_be_read(servers: Servers, chain_of: ChainOf, tmp_path: Path) -> None:
    """A damaged file counts as missing, and a directory that cannot be written costs a warning, not the prompt."""
    servers.all_have("eo-writer")
    await chain_of(order=["phoenix"]).resolve(ROLE)
    (file,) = (tmp_path / "kept").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("{")
    servers.phoenix.failure = PlainTextResponse("", 500)
    with pytest.raises(PromptError, match=r"phoenix: it answered HTTP 500$"):
        await chain_of(order=["phoenix"]).resolve(ROLE)
    file.unlink()
    (tmp_path / "kept").rmdir()
    (tmp_path / "kept").write_text("in the way")
    servers.phoenix.failure = None
    prompt = await chain_of(order=["phoenix"]).resolve(ROLE)
    assert prompt.warnings == ("phoenix: the prompt could not be stored on the disk (Not a directory)",)


async def test_no_source_has_it(servers: Servers, chain_of: ChainOf, tmp_path: Path) -> None:
    """The error lists each source that was asked, in order, and why it has nothing."""
    servers.registry.failure = JSONResponse({}, 403)
    with pytest.raises(PromptError) as raised:
        await chain_of(litellm=None).resolve(ROLE)
    assert str(raised.value) == (
        "the role 'writer' (prompt_ref 'eo-writer') has no prompt. "
        "inline: the role has no prompt in its configuration; phoenix: it has no prompt 'eo-writer'; "
        "litellm: is not configured; "
        "registry: it answered HTTP 403: the key may not read prompts; "
        f"file: {tmp_path}/prompts has no file 'eo-writer' or 'writer'; file: there is no default file"
    )
    with pytest.raises(PromptError, match="phoenix: the role has no prompt_ref"):
        await chain_of().resolve(PromptQuery("writer"))


async def test_an_unknown_variable_ends_the_search(servers: Servers, chain_of: ChainOf) -> None:
    """A prompt whose template cannot be filled in is an error that names prompt and version, and is not kept."""
    servers.all_have("eo-writer")
    servers.phoenix.answers["/v1/prompts/eo-writer/tags/production"] = phoenix_answer("About {{topik}}.", "v4")
    with pytest.raises(PromptError) as raised:
        await chain_of().resolve(PromptQuery("writer", ref="eo-writer", variables={"topic": "law", "lang": "en"}))
    assert str(raised.value) == (
        "the prompt of the role 'writer' (phoenix, prompt 'eo-writer', version v4): the template has the variable "
        "'topik', which has no value; known variables: lang, topic; did you mean 'topic'?"
    )
    servers.phoenix.failure = PlainTextResponse("", 500)
    assert (await chain_of().resolve(ROLE)).source == "litellm"


async def test_the_key(servers: Servers, chain_of: ChainOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is sent as a bearer token, read again for each question, and is in no warning, error or log line."""
    servers.all_have("eo-writer")
    file = tmp_path / "litellm.key"
    monkeypatch.setenv("TEST_PHOENIX_KEY", "sk-phoenix")
    phoenix = {"url": servers.phoenix.url, "allow_private": ["127.0.0.1"], "key": {"env": "TEST_PHOENIX_KEY"}}
    litellm = {"url": f"{servers.litellm.url}/v1/", "allow_private": True, "key": {"file": str(file)}}
    chain = chain_of(order=["phoenix", "litellm", "registry"], phoenix=phoenix, litellm=litellm)
    await chain.resolve(ROLE)
    servers.phoenix.failure = JSONResponse({"detail": "bad key sk-phoenix"}, 401)
    with capture_logs() as logs:
        without_file = await chain.resolve(ROLE)
        file.write_text("sk-litellm\n")
        servers.litellm.failure = JSONResponse({"detail": "bad key sk-litellm"}, 401)
        refused = await chain.resolve(ROLE)
    assert servers.phoenix.keys == ["Bearer sk-phoenix"] * 3
    assert (servers.litellm.keys, servers.litellm.asked) == (["Bearer sk-litellm"], ["/prompts/eo-writer/info"])
    assert servers.registry.keys == [None, None]
    assert without_file.warnings[1] == (
        "litellm: its key cannot be read: the file litellm.key cannot be read (No such file or directory)"
    )
    assert "sk-" not in f"{logs} {refused} {chain._settings!r}"


async def test_the_same_question_is_asked_once(servers: Servers, chain_of: ChainOf) -> None:
    """Queries for one prompt at the same time share one request; a waiter that is cancelled does not end it."""
    servers.all_have("eo-writer")
    servers.phoenix.hangs = True
    chain = chain_of()
    queries = [asyncio.create_task(chain.resolve(ROLE)) for _ in range(20)]
    await until(lambda: servers.phoenix.asked)
    queries[0].cancel()
    servers.phoenix.released.set()
    prompts = await asyncio.gather(*queries, return_exceptions=True)
    assert isinstance(prompts[0], asyncio.CancelledError)
    assert [prompt.text for prompt in prompts[1:] if not isinstance(prompt, BaseException)] == ["from phoenix"] * 19
    assert len(servers.phoenix.asked) == 1


async def test_requests_to_a_server_are_limited(servers: Servers, chain_of: ChainOf) -> None:
    """Eight questions at a time are asked; the others wait for their turn, and are answered."""
    servers.phoenix.hangs = True
    chain = chain_of(order=["phoenix"])
    refs = [f"p{number}" for number in range(20)]
    servers.phoenix.answers = {f"/v1/prompts/{ref}/tags/production": phoenix_answer(ref) for ref in refs}
    queries = [asyncio.create_task(chain.resolve(PromptQuery("writer", ref=ref))) for ref in refs]
    await until(lambda: len(servers.phoenix.asked) == MAX_REQUESTS_PER_SERVER)
    servers.phoenix.released.set()
    assert [prompt.text for prompt in await asyncio.gather(*queries)] == refs
    assert servers.phoenix.most_concurrent == MAX_REQUESTS_PER_SERVER


async def test_other_settings(servers: Servers, chain_of: ChainOf) -> None:
    """Reloaded settings apply to the next query; a question that is being asked ends as it began."""
    servers.all_have("eo-writer")
    servers.phoenix.hangs = True
    chain = chain_of()
    asking = asyncio.create_task(chain.resolve(ROLE))
    await until(lambda: servers.phoenix.asked)
    chain.apply(read_prompts({"order": ["litellm"], "litellm": servers.litellm.table()}))
    assert (await chain.resolve(ROLE)).source == "litellm"
    servers.phoenix.released.set()
    assert (await asking).source == "phoenix"


async def test_closing_ends_questions(servers: Servers, chain_of: ChainOf) -> None:
    """A query during the shutdown gets an error, not a hanging task."""
    servers.phoenix.hangs = True
    chain = chain_of(order=["phoenix"])
    asking = asyncio.create_task(chain.resolve(ROLE))
    await until(lambda: servers.phoenix.asked)
    await chain.close()
    with pytest.raises(PromptError, match="the daemon is shutting down"):
        await asking


async def test_files(chain_of: ChainOf, folder: Path) -> None:
    """The file of the prompt comes before the role's; a name with a path is not looked for; the front matter counts."""
    chain = chain_of(order=["file"])
    (folder.parent / "secret.txt").write_text("outside of the folder")
    (folder / "writer.txt").write_text("by role")
    assert (await chain.resolve(PromptQuery("writer", ref="../secret"))).text == "by role"
    (folder / "eo-writer.md").write_text("---\nmodel: glm-4.6\ninput:\n  default: {tone: calm}\n---\nBe {{tone}}.\n")
    prompt = await chain.resolve(ROLE)
    assert (prompt.text, prompt.model, len(prompt.version)) == ("Be calm.", "glm-4.6", 12)
    (folder / "eo-writer.txt").write_bytes(b"\xff")
    (folder / "writer.txt").unlink()
    with pytest.raises(PromptError, match=r"eo-writer\.txt is not UTF-8 text"):
        await chain.resolve(ROLE)


async def test_litellm_says_who_may_read(servers: Servers, chain_of: ChainOf) -> None:
    """LiteLLM's refusal of a key that is not an administrator's says what is needed."""
    servers.litellm.failure = JSONResponse({"detail": "You are not authorized"}, 403)
    with pytest.raises(PromptError, match="HTTP 403: it shows prompts to keys of administrators only"):
        await chain_of(order=["litellm"]).resolve(ROLE)
    servers.litellm.failure = litellm_answer("System: Be brief.\nUser: {{question}}")
    assert (await chain_of(order=["litellm"]).resolve(ROLE)).text == "Be brief."


async def test_the_served_registry_without_the_prompt_is_named(tmp_path: Path) -> None:
    """The error says that the registry does not have the prompt, and not that there is no registry."""

    def own(ref: str) -> None:
        raise LookupError(ref)

    chain = PromptChain(read_prompts({"folder": tmp_path}), tmp_path / "kept", own=own)
    with pytest.raises(PromptError, match="registry: it has no prompt 'eo-writer'"):
        await chain.resolve(ROLE)
    await chain.close()


async def test_prompts_are_listed(servers: Servers, chain_of: ChainOf, folder: Path) -> None:
    """Each name is listed once, as the first source that has it; a source that fails, or has more, is a problem."""
    folder.mkdir(exist_ok=True)
    for name in ("shared.md", "own.txt", "default.md", "no prompt.md", "picture.png"):
        (folder / name).write_text("Answer.")
    shared = {"name": "shared", "description": "Of Phoenix."}
    servers.phoenix.answers["/v1/prompts"] = JSONResponse({"data": [shared, None, {"name": 5}], "next_cursor": "x"})
    servers.litellm.answers["/prompts/list"] = JSONResponse({"prompts": [{"prompt_id": "lite"}, {"prompt_id": "own"}]})
    servers.registry.answers["/prompts"] = JSONResponse({"count": 1})
    listed, problems = await chain_of().listed()
    assert [(each.prompt_ref, each.source) for each in listed] == [
        ("lite", "litellm"), ("own", "litellm"), ("shared", "phoenix"),
    ]  # fmt: skip
    assert listed[2].description == "Of Phoenix."
    assert problems == ["phoenix: only the first 1000 are listed", "registry: its answer has no list prompts"]
