"""The daemon's components together: the order of start and close, what tools see, and which files no call may read."""

import time
from collections.abc import Callable
from contextlib import AsyncExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.daemon.app_requests import NO_SDKS, call, hello_ack
from tests.full_disk import largest_file
from tests.waiting import until
from toold.daemon.access import TokenBook, change_tokens
from toold.daemon.lifecycle import running, time_for_calls
from toold.daemon.persistence.state_directory import AlreadyRunningError, StateDirectory, read_address
from toold.protocol.daemon_address import DaemonAddress
from toold.protocol.error_codes import ServiceUnavailableError
from toold.protocol.tool_call import LOCAL, Cost, ModelUsage, Usage
from toold.store import CallEnd, CallRow, Store, StoreError, open_archive


async def test_a_running_daemon_publishes_its_address(settings_with: Any, state_dir: Path) -> None:
    """The address has the ports on which the daemon listens; at the end, the file is removed and the lock released."""
    async with running(settings_with(TOOLD_SIMULATE="true", **NO_SDKS)) as daemon:
        address = read_address(state_dir)
        assert address == daemon.address()
        assert address.port
        assert address.http_port not in {0, address.port}
        assert (address.tls, address.auth) == (False, True)
        assert (await call(daemon, "echo", text="hi"))["outputs"][0]["text"] == "hi"
    assert read_address(state_dir) is None
    with StateDirectory(state_dir):
        pass


@pytest.mark.parametrize("setting", ["TOOLD_PORT", "TOOLD_HTTP_PORT"])
async def test_a_failed_start_closes_everything(
    settings_with: Any, state_dir: Path, taken_port: int, setting: str
) -> None:
    """The error names the port, and the next start in the same directory succeeds."""
    with pytest.raises(OSError, match=str(taken_port)):
        async with running(settings_with(TOOLD_SIMULATE="true", **NO_SDKS, **{setting: str(taken_port)})):
            pytest.fail("it started")
    assert read_address(state_dir) is None
    async with running(settings_with(TOOLD_SIMULATE="true", **NO_SDKS)):
        pass


async def test_a_first_start_that_fails_stays_a_first_start(settings_with: Any, state_dir: Path) -> None:
    """Its key signed nothing and is deleted, so the next start begins a first chain, too."""
    (state_dir / "toold.db").mkdir(parents=True)
    state_dir.chmod(0o700)
    with pytest.raises(StoreError):
        async with running(settings_with(TOOLD_SIMULATE="true", **NO_SDKS)):
            pytest.fail("it started")
    assert not (state_dir / "audit.key").exists()
    (state_dir / "toold.db").rmdir()
    async with running(settings_with(TOOLD_SIMULATE="true", **NO_SDKS)):
        assert beginnings(state_dir) == ["began"]


async def test_a_missing_database_with_an_existing_key(settings_with: Any, state_dir: Path) -> None:
    """Without the database that the key signed, the chain begins again, and its first checkpoint says so."""
    async with running(settings_with(TOOLD_SIMULATE="true", **NO_SDKS)):
        assert beginnings(state_dir) == ["began"]
    for path in state_dir.glob("toold.db*"):
        path.unlink()
    async with running(settings_with(TOOLD_SIMULATE="true", **NO_SDKS)):
        assert beginnings(state_dir) == ["begun again"]


def beginnings(state_dir: Path) -> list[str]:
    """The kinds of the checkpoints of a chain that has just begun."""
    with open_archive(state_dir / "toold.db") as archive:
        return [checkpoint.kind for checkpoint in archive.trail().checkpoints]


async def test_a_start_on_a_full_disk(settings_with: Any, state_dir: Path, row: Callable[..., CallRow]) -> None:
    """If the disk is too full to open the database, local calls run and others are refused. Once there is space, the
    daemon restores the spending and accepts all calls.
    """
    settings = settings_with(TOOLD_SIMULATE="true", **NO_SDKS)
    async with running(settings) as daemon:
        spent = ModelUsage("kimi", "kimi-k3.1-pro", 1, Usage(10, 10), Cost(0.5, "CNY"))
        end = CallEnd(
            session_id="s-1", request_key="1", result=None, at=time.time(), row=row(), usage_by_model=(spent,)
        )
        await daemon.store.journal.end(end)
    with largest_file(16 * 1024):
        stack = AsyncExitStack()
        daemon = await stack.enter_async_context(running(settings))
        assert (await hello_ack(daemon))["durability"] == "memory"
        assert (await call(daemon, "echo", text="hi"))["error"] is None
        refused = (await call(daemon, "sim_effect", text="full"))["error"]
        assert (refused["code"], refused["executed"]) == ("SERVICE_UNAVAILABLE", "no")
        assert any("only local calls" in problem for problem in daemon.view.health(LOCAL)["problems"])
        assert daemon.view.budget.state()["spent"] == {}
    async with stack:
        await until(lambda: daemon.store.problem is None and daemon.view.budget.state()["spent"])
        assert daemon.view.budget.state()["spent"] == {"CNY": 0.5}
        assert (await hello_ack(daemon))["durability"] == "disk"
        assert (await call(daemon, "sim_effect", text="later"))["error"] is None
    assert (state_dir / "sim_effect.log").read_text().split() == ["later"]


async def test_the_address_is_published_once_there_is_space(
    settings_with: Any, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk that refuses the address file does not stop the start."""
    publish, attempts = StateDirectory.write_address, []

    def refuse_first(state: StateDirectory, address: DaemonAddress) -> None:
        attempts.append(address)
        with largest_file(0) if len(attempts) == 1 else nullcontext():
            publish(state, address)

    monkeypatch.setattr(StateDirectory, "write_address", refuse_first)
    monkeypatch.setattr("toold.daemon.component_list._ADDRESS_RETRY_S", 0.01)
    async with running(settings_with(TOOLD_SIMULATE="true", **NO_SDKS)) as daemon:
        await until(lambda: read_address(state_dir) == daemon.address())
        assert len(attempts) == 2


async def test_one_daemon_per_state_directory(run_with: Any, settings_with: Any) -> None:
    """The second one fails with the first one's pid; the first continues."""
    daemon = await run_with()
    with pytest.raises(AlreadyRunningError, match=str(daemon.websocket.port)):
        async with running(settings_with(**NO_SDKS)):
            pytest.fail("it started")
    assert (await call(daemon, "echo", text="hi"))["error"] is None


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"KIMI_API_KEY": "a-key"}, "kimi"),
        ({"GLM_API_KEY": "a-key"}, "glm"),
        ({"KIMI_API_KEY": "a-key", "TOOLD_DEFAULT_MODEL": "GLM-4.6"}, "glm"),
    ],
)
async def test_the_default_model_is_of_an_available_vendor(run_with: Any, env: dict[str, str], expected: str) -> None:
    """Unless the operator named one, which may be spelt as the catalog takes it."""
    daemon = await run_with(TOOLD_SIMULATE="false", **env)
    assert daemon.catalog.resolve(daemon.view.default_model()).provider == expected


async def test_models_that_are_not_allowed_are_refused_and_not_listed(run_with: Any, configure: Any) -> None:
    """The error names the allowed ones, the default is one of them, and a reload changes them."""
    daemon = await run_with(TOOLD_GLM_ALLOWED_MODELS="glm-4.6, glm-4.5-air", TOOLD_KIMI_ALLOWED_MODELS="kimi-k3")
    assert daemon.view.default_model() == "glm-4.5-air"
    refused = (await call(daemon, "chat", prompt="hello", model="glm-4.7"))["error"]
    assert refused["code"] == "VALIDATION_ERROR"
    assert "the allowed models of glm are glm-4.6, glm-4.5-air" in refused["message"]
    listed = (await call(daemon, "listmodels"))["structured"]["models"]
    assert {model["id"] for model in listed} == {"kimi-k3", "glm-4.6", "glm-4.5-air"}
    configure('locale = "fr-FR"\n')
    assert (await daemon.reload()).reloaded == ("locale",)
    assert daemon.view.locale == "fr-FR"


async def test_without_any_vendor_there_is_no_default_model(run_with: Any) -> None:
    """Tools that need a vendor name both keys; others work."""
    daemon = await run_with(TOOLD_SIMULATE="false")
    with pytest.raises(ServiceUnavailableError, match=r"KIMI_API_KEY.*GLM_API_KEY"):
        daemon.view.default_model()
    refused = (await call(daemon, "chat", prompt="hello"))["error"]
    assert (refused["code"], refused["retryable"]) == ("SERVICE_UNAVAILABLE", False)
    assert (await call(daemon, "echo", text="hi"))["error"] is None


async def test_status_shows_the_whole_daemon(run_with: Any) -> None:
    """Health, limits, providers, what the store did, the sums, and as many of the last calls as are asked for."""
    daemon = await run_with()
    for _ in range(3):
        await call(daemon, "echo", text="x")
    await daemon.store.flush()
    shown = await daemon.view.status(LOCAL, recent=2, days=7)
    assert (shown["status"], shown["problems"], shown["simulated"]) == ("ready", [], True)
    assert {row["name"] for row in shown["providers"]} == {"kimi", "glm"}
    assert shown["limits"]["providers"]["glm"]["limit"] == 4
    assert shown["totals"]["all"]["calls"] == shown["audit"]["written"] == 3
    assert [row["tool"] for row in shown["recent"]] == ["echo", "echo"]
    assert shown["tools"] == len(daemon.registry.tools)


async def test_an_unreadable_store_is_a_problem_not_a_failure(run_with: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """``status`` reports everything else, and what could not be read."""
    daemon = await run_with()

    async def refuse(_principal: str | None) -> None:
        raise StoreError("the database cannot be read (disk I/O error)", "disk I/O error")

    monkeypatch.setattr(daemon.store.audit, "totals", refuse)
    shown = await daemon.view.status(LOCAL, recent=5, days=7)
    assert shown["problems"] == ["the database cannot be read (disk I/O error)"]
    assert shown["status"] == "ready"
    assert "totals" not in shown


async def test_a_disk_error_is_reported_with_its_consequence(run_with: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report has the system's error message, and what it means for calls."""
    daemon = await run_with()
    monkeypatch.setattr(Store, "problem", "database or disk is full")
    reported = "the database cannot be written (database or disk is full); only local calls are accepted"
    assert daemon.view.health(LOCAL)["problems"] == [reported]


async def test_a_damaged_database_is_a_problem_until_it_is_repaired(run_with: Any) -> None:
    """``health``, ``status`` and ``self-check`` report damage that a read has found."""
    daemon = await run_with()
    daemon.store._reader.damage = "the database is damaged: repair it"
    assert daemon.view.health(LOCAL)["problems"] == ["the database is damaged: repair it"]
    shown = await daemon.view.status(LOCAL, recent=0, days=0)
    assert shown["problems"] == [shown["audit"]["problem"]] == ["the database is damaged: repair it"]
    (reported,) = [check for check in await daemon.view.self_check(LOCAL) if check["check"] == "store"]
    assert (reported["status"], reported["remedy"]) == ("fail", "repair it")


@pytest.mark.parametrize("path", ["state/token", "state/toold.db", "toold.toml", "link", "crm"])
async def test_no_call_reads_the_daemons_own_secrets(run_with: Any, tmp_path: Path, path: str) -> None:
    """Even if the state directory and configuration are in the workspace, or behind a link."""
    source = '[sources.crm]\ntype = "openapi"\nspec = "missing.json"\nauth = { type = "bearer", file = "crm" }\n'
    (tmp_path / "toold.toml").write_text(f'kimi_api_key = "sim-secret"\n{source}')
    (tmp_path / "crm").write_text("s3cret")
    (tmp_path / "link").symlink_to(tmp_path / "state" / "token")
    daemon = await run_with()
    answer = await call(daemon, "chat", prompt="Read it.", files=[path])
    assert answer["error"]["code"] == "PERMISSION_DENIED"
    assert path in answer["error"]["message"]


async def test_an_editors_open_folder_is_readable_if_the_operator_permits_it(
    run_with: Any, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """``client_workspaces`` takes effect at a reload, for the daemon's own token; other principals stay refused."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "a.txt").write_text("hello")
    daemon = await run_with()
    question: dict[str, Any] = {"prompt": "Read it.", "files": ["a.txt"], "client": {"workspace": str(folder)}}
    refused = await call(daemon, "chat", **question)
    assert refused["error"]["code"] == "PERMISSION_DENIED"
    assert "`client_workspaces = true`" in refused["error"]["message"]
    (tmp_path / "toold.toml").write_text("client_workspaces = true\n")
    assert (await daemon.reload()).reloaded == ("client_workspaces",)
    assert "a.txt" in (await call(daemon, "chat", **question))["outputs"][0]["text"]
    book, named = TokenBook().with_new("other", 1.0, toolsets=(), operator=True)
    change_tokens(daemon.settings.state_dir, lambda _: book)
    assert (await call(daemon, "chat", token=named, **question))["error"]["code"] == "PERMISSION_DENIED"


# --- the configuration, read again -----------------------------------------------------------------------------------


async def test_a_vendors_failure_is_counted_and_logged(run_with: Any) -> None:
    """By provider and code, once for each completion that failed."""
    daemon = await run_with()
    with capture_logs() as lines:
        await call(daemon, "chat", prompt="[[sim:status=401]]", model="glm-4.6")
    reported = [(line["provider"], line["code"]) for line in lines if line["event"] == "provider failed"]
    assert reported == [("glm", "PROVIDER_ERROR")]
    assert b'toold_provider_errors_total{code="PROVIDER_ERROR",provider="glm"} 1.0' in daemon.metrics.render()


@pytest.mark.parametrize(("grace_s", "calls_s"), [(10.0, 7.5), (60.0, 57.5), (3.0, 1.5), (0.0, 0.0)])
def test_the_shutdown_fits_in_the_grace_period(grace_s: float, calls_s: float) -> None:
    """Running calls have what the rest of the end leaves them, and at least half."""
    assert time_for_calls(grace_s) == calls_s


async def test_its_repr_shows_its_state(run_with: Any) -> None:
    """Connections, calls and permits, for debugging."""
    assert "<ConnectionSlots 0/5000 +0>" in repr(await run_with())
