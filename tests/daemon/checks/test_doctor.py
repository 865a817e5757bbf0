"""The doctor as a whole: that it looks at everything, and changes nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest
from toold.daemon.checks import doctor
from toold.daemon.checks.check_result import CheckResult
from toold.daemon.checks.doctor import diagnose
from toold.daemon.config.settings import Settings

MakeSettings = Callable[..., Settings]
SECRET = "sk-verysecretverysecretverysecret"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever proxy this machine has, the tests talk to loopback alone."""
    monkeypatch.setattr("urllib.request.getproxies", dict)


def named(checks: list[CheckResult], name: str) -> CheckResult:
    (found,) = [check for check in checks if check.name == name]
    return found


async def test_a_fresh_machine_is_well_and_stays_untouched(settings_with: MakeSettings, tmp_path: Path) -> None:
    """Before the first start nothing is wrong, and looking makes neither directory nor file."""
    checks = await diagnose(settings_with(), env={})
    assert {check.status for check in checks} <= {"ok", "warn"}
    assert "created at the first start" in named(checks, "state directory").message
    assert list(tmp_path.iterdir()) == []


async def test_every_problem_has_a_remedy(settings_with: MakeSettings, state_dir: Path, taken_port: int) -> None:
    """Every problem has a remedy; an ``ok`` check has none."""
    state_dir.write_text("a file in the way")
    env = {"TOOLD_SIMULATE": "false", "TOOLD_HTTP_PORT": str(taken_port)}
    checks = await diagnose(settings_with(**env), env={"TOOLD_PROT": "1"})
    assert {check.name for check in checks if check.status != "ok"} >= {
        "environment",
        "kimi key",
        "glm key",
        "http_port",
        "state directory",
    }
    for check in checks:
        assert (check.remedy is None) == (check.status == "ok"), check


async def test_no_check_shows_a_secret(settings_with: MakeSettings, taken_port: int) -> None:
    """Keys and tokens are named by their variable, never by value, and are not sent."""
    env = {
        "MOONSHOT_API_KEY": SECRET,
        "TOOLD_TOKEN": SECRET,
        "KIMI_BASE_URL": f"http://127.0.0.1:{taken_port}/v1",
    }
    checks = await diagnose(settings_with(**env), env=env)
    assert named(checks, "kimi key").message == "set by MOONSHOT_API_KEY"
    assert SECRET not in repr(checks)


def test_python_versions() -> None:
    """Python before 3.11 is too old."""
    assert doctor.python_version((3, 11, 0)).status == "ok"
    assert doctor.python_version((3, 10, 9)).status == "fail"


def test_misspelt_variables() -> None:
    """A variable that looks like ours and is not gets the name that was probably meant."""
    (check,) = doctor.unknown_variables({"TOOLD_PROT": "1", "TOOLD_PORT": "2", "TOOLD_CONFIG": "x", "PATH": ""})
    assert check.message == "TOOLD_PROT is not a setting and has no effect; did you mean 'TOOLD_PORT'?"
