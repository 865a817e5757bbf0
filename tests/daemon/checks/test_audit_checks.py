"""The doctor's check of Supabase: problems with their remedies; nothing is sent."""

from collections.abc import AsyncIterator, Callable

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from toold.daemon.checks import audit_checks
from toold.daemon.config.settings import Settings
from toold.serving import HttpServer

MakeSettings = Callable[..., Settings]
KEY = "sb_secret_for_the_tests"


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
    assert await audit_checks.supabase(settings_with()) == []


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
    (check,) = await audit_checks.supabase(settings_with(**given))
    assert (check.status, check.remedy) == ("warn", f"set {missing}")


async def test_a_project_that_is_ready(settings_with: MakeSettings, project: Project) -> None:
    """Every table is asked, with the key, and for no row."""
    settings = settings_with(TOOLD_SUPABASE_URL=project.url, TOOLD_SUPABASE_SERVICE_ROLE_KEY=KEY)
    (check,) = await audit_checks.supabase(settings)
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
    (check,) = await audit_checks.supabase(settings)
    assert check.status == verdict
    assert remedy in str(check.remedy)
    assert KEY not in repr(check)


async def test_an_unreachable_project(settings_with: MakeSettings) -> None:
    """A project that does not answer is a warning: calls wait for it."""
    settings = settings_with(TOOLD_SUPABASE_URL="http://127.0.0.1:1", TOOLD_SUPABASE_SERVICE_ROLE_KEY=KEY)
    (check,) = await audit_checks.supabase(settings)
    assert (check.status, check.message.startswith("no answer")) == ("warn", True)
