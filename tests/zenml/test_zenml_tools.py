"""The tools for ZenML, on a daemon with a stand-in for the server."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.simulated_daemon import TOKEN, simulated_environment
from tests.waiting import until
from toold.client import MCPWebSocketClient
from toold.daemon.config.setting_sources import SettingsError, load_settings
from toold.daemon.lifecycle import running
from toold.protocol.error_codes import CallError, InvalidArgumentsError, NotFoundError, ToolExecutionError
from toold.providers.simulator import Simulator

from .zenml_stand_in import KEY, SNAPSHOT, ZenmlStandIn, zenml_stand_in

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Pipelines:
    """The daemon's client, the stand-in and what starts the daemon again."""

    client: MCPWebSocketClient
    server: ZenmlStandIn

    async def call(self, tool: str, **arguments: Any) -> Any:
        """The data of a call's answer."""
        return (await self.client.call(tool, arguments)).structured


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipelines(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pipelines]:
    """A daemon with ``[zenml]``."""
    directory = tmp_path_factory.mktemp("zenml")
    (directory / "key").write_text(KEY)
    (directory / "key").chmod(0o600)
    async with zenml_stand_in() as server, Simulator() as simulator:
        (directory / "toold.toml").write_text(server.toml(key='{ file = "key" }'))
        settings = load_settings({}, env=simulated_environment(directory / "state", simulator), cwd=directory)
        async with running(settings) as daemon, MCPWebSocketClient(daemon.address().url, token=TOKEN) as client:
            yield Pipelines(client, server)


async def test_a_pipeline_runs_until_it_ends(pipelines: Pipelines) -> None:
    """A snapshot is found by its name, runs with the parameters, and the call waits over failures of the server."""
    pipelines.server.statuses = ["running", "running", "completed"]
    pipelines.server.failures = [503, 500]
    run = await pipelines.call("zenml_trigger", snapshot="training", parameters={"epochs": 3})
    assert run["status"] == "completed"
    assert pipelines.server.configurations[-1] == {"parameters": {"epochs": 3}, "run_name": run["name"]}
    assert run["name"].startswith("toold-")


async def test_a_failed_run_is_an_error(pipelines: Pipelines) -> None:
    """The error has the run's id and status."""
    pipelines.server.statuses = ["failed"]
    with pytest.raises(ToolExecutionError, match="ended as failed") as error:
        await pipelines.call("zenml_trigger", snapshot=SNAPSHOT)
    assert error.value.details is not None
    assert error.value.details["id"] == pipelines.server.runs[-1]["id"]


async def test_a_start_without_an_answer_is_looked_for(pipelines: Pipelines) -> None:
    """The run that started is found by its name, and no second one is started."""
    before = len(pipelines.server.runs)
    pipelines.server.statuses, pipelines.server.drops_next_start = ["completed"], True
    run = await pipelines.call("zenml_trigger", snapshot=SNAPSHOT)
    assert run["status"] == "completed"
    assert len(pipelines.server.runs) == before + 1


async def test_a_detached_call_waits_and_a_run_can_be_stopped(pipelines: Pipelines) -> None:
    """The call id is answered at once; zenml_stop stops the run, and the call ends with its status."""
    before = len(pipelines.server.runs)
    pipelines.server.statuses = ["running"]
    started = await pipelines.call("zenml_trigger", snapshot=SNAPSHOT, detach=True)
    await until(lambda: len(pipelines.server.runs) > before)
    run = await pipelines.call("zenml_stop", run_id=pipelines.server.runs[-1]["id"])
    assert run["status"] == "stopping"
    run_state = pipelines.server.runs[-1]["body"]
    run_state["status"] = "running"
    pipelines.server.statuses = ["stopped"]

    async def ended() -> bool:
        state = await pipelines.call("call_status", call_id=started["call_id"])
        return bool(state["state"] == "failed")

    await until(ended)
    result = await pipelines.call("call_result", call_id=started["call_id"])
    assert "ended as stopped" in result["error"]["message"]


@pytest.mark.parametrize(("on_cancel", "status"), [("stop", "stopping"), ("keep", "running")])
async def test_a_cancelled_call_stops_its_run(pipelines: Pipelines, on_cancel: str, status: str) -> None:
    """The run of a call that its caller cancels is stopped, unless the call says that it is kept."""
    server = pipelines.server
    before, server.statuses = len(server.runs), ["running"]
    arguments = {"snapshot": SNAPSHOT, "detach": True, "on_cancel": on_cancel}
    started = await pipelines.call("zenml_trigger", **arguments)
    await until(lambda: len(server.runs) > before and server.runs[-1]["body"]["status"] == "running")
    await pipelines.call("cancel_call", call_id=started["call_id"])
    await until(lambda: server.runs[-1]["body"]["status"] == status)
    result = await pipelines.call("call_result", call_id=started["call_id"])
    assert (result["error"]["code"], server.runs[-1]["body"]["status"]) == ("CANCELLED", status)


async def test_a_run_survives_a_restart_of_the_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A detached call that the daemon's end interrupted waits again for the run that it started."""
    async with zenml_stand_in() as server, Simulator() as simulator:
        (tmp_path / "toold.toml").write_text(server.toml())
        monkeypatch.setenv("ZENML_STORE_API_KEY", KEY)
        settings = load_settings({}, env=simulated_environment(tmp_path / "state", simulator), cwd=tmp_path)
        server.statuses = ["running"]
        async with running(settings) as daemon, MCPWebSocketClient(daemon.address().url, token=TOKEN) as client:
            started = await client.call("zenml_trigger", {"snapshot": SNAPSHOT, "detach": True})
            await until(lambda: server.runs and server.runs[0]["body"]["status"] == "running")
        server.statuses = ["completed"]
        async with running(settings) as daemon, MCPWebSocketClient(daemon.address().url, token=TOKEN) as client:

            async def done() -> bool:
                state = await client.call("call_status", {"call_id": started.structured["call_id"]})
                return bool(state.structured["state"] == "done")

            await until(done)
        assert len(server.runs) == 1


async def test_an_expired_token_is_renewed(pipelines: Pipelines) -> None:
    """A refused token leads to one more login."""
    pipelines.server.statuses = ["completed"]
    pipelines.server.token = "revoked"
    logins = pipelines.server.logins
    assert (await pipelines.call("zenml_trigger", snapshot=SNAPSHOT))["status"] == "completed"
    assert pipelines.server.logins == logins + 1


async def test_artifacts_are_found(pipelines: Pipelines) -> None:
    """An artifact has its URI, type, producer and metadata."""
    found = await pipelines.call("zenml_artifact", name="model")
    [artifact] = found["artifacts"]
    assert (artifact["uri"], artifact["data_type"]) == ("s3://bucket/model/7", "torch.nn.Module")
    assert artifact["metadata"] == {"accuracy": 0.9}
    assert (await pipelines.call("zenml_artifact", name="nothing"))["artifacts"] == []


async def test_a_wait_ends_after_its_time(pipelines: Pipelines) -> None:
    """The run continues, and the error has its id."""
    pipelines.server.statuses = ["running"]
    with pytest.raises(CallError, match="still in progress") as error:
        await pipelines.call("zenml_trigger", snapshot=SNAPSHOT, timeout_s=0.1)
    assert error.value.details is not None
    assert error.value.details["run_id"] == pipelines.server.runs[-1]["id"]


@pytest.mark.parametrize(
    ("arguments", "error", "part"),
    [
        ({"snapshot": "trainin"}, NotFoundError, "no snapshot 'trainin'"),
        ({"snapshot": SNAPSHOT.replace("1", "9")}, NotFoundError, "no such object"),
        ({"snapshot": SNAPSHOT, "configuration": {"run_name": "x"}}, InvalidArgumentsError, "toold sets it"),
        ({"snapshot": SNAPSHOT, "timeout_s": 2000}, InvalidArgumentsError, "with detach"),
    ],
)
async def test_invalid_requests_are_refused(
    pipelines: Pipelines, arguments: dict[str, Any], error: type[CallError], part: str
) -> None:
    """The error says what is wrong, and nothing is started."""
    before = len(pipelines.server.runs)
    with pytest.raises(error, match=part):
        await pipelines.call("zenml_trigger", **arguments)
    assert len(pipelines.server.runs) == before


@pytest.mark.parametrize(
    ("table", "part"),
    [
        ("[zenml]", "url is required"),
        ("[zenml]\nurl = 'http://zenml.example'", "use https"),
        ("[zenml]\nurl = 'https://zenml.example'\napi_key = 'x'", "api_key is not a setting"),
    ],
)
async def test_invalid_settings_of_zenml_are_refused(tmp_path: Path, table: str, part: str) -> None:
    """The error names the key; ``ZENML_STORE_URL`` is the default of the URL."""
    (tmp_path / "toold.toml").write_text(table)
    with pytest.raises(SettingsError, match=part):
        load_settings({}, env={}, cwd=tmp_path)
    (tmp_path / "toold.toml").write_text("[zenml]")
    settings = load_settings({}, env={"ZENML_STORE_URL": "https://zenml.example"}, cwd=tmp_path)
    assert str(settings.zenml) == "https://zenml.example"
