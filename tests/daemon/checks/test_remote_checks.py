"""The doctor's checks of remote services: vendors and Supabase."""

import importlib.metadata
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from toold.daemon.checks import remote_checks
from toold.daemon.config.settings import Settings
from toold.serving import HttpServer

MakeSettings = Callable[..., Settings]
KEY = "sb_secret_for_the_tests"
SECRET = "sk-verysecretverysecretverysecret"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever proxy this machine has, the tests talk to loopback alone."""
    monkeypatch.setattr("urllib.request.getproxies", dict)


@pytest.mark.parametrize(
    ("env", "status", "message"),
    [
        ({}, "ok", "not set; the simulator answers for glm"),
        ({"KIMI_API_KEY": SECRET}, "warn", "not set: models of glm are not available"),
        ({"ZHIPUAI_API_KEY": SECRET}, "ok", "set by ZHIPUAI_API_KEY"),
        ({"GLM_API_KEY": SECRET, "TOOLD_SIMULATE": "1"}, "ok", "set by GLM_API_KEY (not used: simulated)"),
    ],
)
def test_keys(settings_with: MakeSettings, env: dict[str, str], status: str, message: str) -> None:
    """Whether a key is set, by which variable, and whether it will be used."""
    _, glm = remote_checks.keys(settings_with(**env))
    assert (glm.status, glm.message) == (status, message)


def test_a_key_of_the_file(settings_with: MakeSettings, tmp_path: Path) -> None:
    """A key that no variable sets came from toold.toml."""
    (tmp_path / "toold.toml").write_text(f"glm_api_key = '{SECRET}'")
    _, glm = remote_checks.keys(settings_with())
    assert glm.message == "set by toold.toml"


def test_sdks(settings_with: MakeSettings) -> None:
    """The SDK that carries a vendor's calls is named with its version; plain HTTP where that was chosen."""
    kimi, glm = remote_checks.sdks(settings_with(TOOLD_GLM_SDK="http"))
    assert kimi.message.startswith("openai ")
    assert glm.message.startswith("httpx ")


def test_an_sdk_that_is_missing(settings_with: MakeSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an SDK plain HTTP is used and reported; a missing SDK that was requested is an error."""

    def version(_: str) -> str:
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr("importlib.metadata.version", version)
    kimi, glm = remote_checks.sdks(settings_with(TOOLD_GLM_SDK="zai"))
    assert (kimi.status, kimi.remedy) == ("warn", "run pip install '.[kimi]' in toold's checkout")
    assert (glm.status, glm.remedy) == ("fail", "run pip install '.[zai]' in toold's checkout, or set glm_sdk to auto")


async def test_a_reachable_vendor(taken_port: int) -> None:
    """A host that takes the connection is reachable; nothing is sent to it."""
    check = await remote_checks.reach("kimi", f"http://127.0.0.1:{taken_port}/v1", "kimi_base_url")
    assert (check.status, check.message) == ("ok", f"127.0.0.1:{taken_port} accepts connections")


async def test_an_unreachable_vendor() -> None:
    """A closed port is reported with host and port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    check = await remote_checks.reach("glm", f"http://127.0.0.1:{port}/", "glm_base_url")
    assert check.status == "fail"
    assert f"127.0.0.1:{port}" in check.message
    assert "glm_base_url" in (check.remedy or "")


async def test_a_vendor_that_does_not_answer(taken_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that takes the connection and never ends the TLS handshake is given up after the bound."""
    monkeypatch.setattr(remote_checks, "REACH_TIMEOUT_S", 0.05)
    check = await remote_checks.reach("glm", f"https://127.0.0.1:{taken_port}/", "glm_base_url")
    assert check.status == "fail"
    assert "did not answer within 0.05 s" in check.message


async def test_a_vendor_behind_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a proxy carries the requests, a connection of our own would say nothing."""
    monkeypatch.setattr("urllib.request.getproxies", lambda: {"https": "http://proxy"})
    monkeypatch.setattr("urllib.request.proxy_bypass", lambda _: False)
    assert "skipped" in (await remote_checks.reach("glm", "https://192.0.2.1/", "glm_base_url")).message


class Project:
    """Answers ``status`` and ``body`` to every question."""

    def __init__(self) -> None:
        self.status, self.body = 200, b"[]"
        self.asked: list[Request] = []
        self.url = ""

    async def answer(self, request: Request) -> Response:
        self.asked.append(request)
        return Response(self.body, self.status)


@pytest.fixture
async def project() -> AsyncIterator[Project]:
    project = Project()
    server = HttpServer(Starlette(routes=[Route("/rest/v1/{table}", project.answer)]), "127.0.0.1", 0, "--port")
    await server.start()
    project.url = f"http://127.0.0.1:{server.port}"
    yield project
    await server.close()


async def test_without_supabase_there_is_nothing_to_check(settings_with: MakeSettings) -> None:
    """Without Supabase there is no check."""
    assert await remote_checks.supabase(settings_with()) == []


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"TOOLD_SUPABASE_URL": "https://project.test"}, "TOOLD_SUPABASE_SERVICE_ROLE_KEY"),
        ({"TOOLD_SUPABASE_SERVICE_ROLE_KEY": KEY}, "TOOLD_SUPABASE_URL"),
    ],
)
async def test_an_incomplete_setup_is_reported(
    settings_with: MakeSettings, given: dict[str, str], missing: str
) -> None:
    """One of address and key sends nothing; the other one is named."""
    (check,) = await remote_checks.supabase(settings_with(**given))
    assert (check.status, check.remedy) == ("warn", f"set {missing}")


async def test_a_project_that_is_ready(settings_with: MakeSettings, project: Project) -> None:
    """Every table is asked, with the key, and for no row."""
    settings = settings_with(TOOLD_SUPABASE_URL=project.url, TOOLD_SUPABASE_SERVICE_ROLE_KEY=KEY)
    (check,) = await remote_checks.supabase(settings)
    assert (check.status, check.remedy) == ("ok", None)
    assert {"toold_calls", "toold_checkpoints", "toold_messages"} <= {
        request.path_params["table"] for request in project.asked
    }
    assert {(request.headers["apikey"], request.query_params["limit"]) for request in project.asked} == {(KEY, "0")}


@pytest.mark.parametrize(
    ("status", "body", "verdict", "remedy"),
    [
        (401, b'{"message": "Invalid API key"}', "fail", "TOOLD_SUPABASE_SERVICE_ROLE_KEY"),
        (404, b'{"code": "PGRST205", "message": "no such table"}', "fail", "supabase/migrations"),
        (400, b'{"code": "42703", "message": "no such column"}', "fail", "supabase/migrations"),
        (404, b"<html>", "fail", "TOOLD_SUPABASE_URL"),
        (200, b"<html>", "fail", "TOOLD_SUPABASE_URL"),
        (503, b"", "warn", "audit rows stay"),
    ],
)
async def test_each_problem_has_a_remedy(
    settings_with: MakeSettings, project: Project, status: int, body: bytes, verdict: str, remedy: str
) -> None:
    """The key, the tables or the address; what may pass by itself is a warning. The key is not shown."""
    project.status, project.body = status, body
    settings = settings_with(TOOLD_SUPABASE_URL=project.url, TOOLD_SUPABASE_SERVICE_ROLE_KEY=KEY)
    (check,) = await remote_checks.supabase(settings)
    assert check.status == verdict
    assert remedy in str(check.remedy)
    assert KEY not in repr(check)


async def test_an_unreachable_project(settings_with: MakeSettings) -> None:
    """A project that does not answer is a warning: calls wait for it."""
    settings = settings_with(TOOLD_SUPABASE_URL="http://127.0.0.1:1", TOOLD_SUPABASE_SERVICE_ROLE_KEY=KEY)
    (check,) = await remote_checks.supabase(settings)
    assert (check.status, check.message.startswith("no answer")) == ("warn", True)
