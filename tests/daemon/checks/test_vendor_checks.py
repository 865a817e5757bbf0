"""The doctor's checks of the vendors."""

import importlib.metadata
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from toold.daemon.checks import vendor_checks
from toold.daemon.config.settings import Settings

MakeSettings = Callable[..., Settings]
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
    _, glm = vendor_checks.keys(settings_with(**env), env)
    assert (glm.status, glm.message) == (status, message)


def test_a_key_of_the_file(settings_with: MakeSettings, tmp_path: Path) -> None:
    """A key that no variable sets came from toold.toml."""
    (tmp_path / "toold.toml").write_text(f"glm_api_key = '{SECRET}'")
    _, glm = vendor_checks.keys(settings_with(), {})
    assert glm.message == "set by toold.toml"


def test_sdks(settings_with: MakeSettings) -> None:
    """The SDK that carries a vendor's calls is named with its version; plain HTTP where that was chosen."""
    kimi, glm = vendor_checks.sdks(settings_with(TOOLD_GLM_SDK="http"))
    assert kimi.message.startswith("openai ")
    assert glm.message.startswith("httpx ")


def test_an_sdk_that_is_missing(settings_with: MakeSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an SDK plain HTTP is used and reported; a missing SDK that was requested is an error."""

    def version(_: str) -> str:
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr("importlib.metadata.version", version)
    kimi, glm = vendor_checks.sdks(settings_with(TOOLD_GLM_SDK="zai"))
    assert (kimi.status, kimi.remedy) == ("warn", "run pip install 'toold[kimi]'")
    assert (glm.status, glm.remedy) == ("fail", "run pip install 'toold[zai]', or set glm_sdk to auto")


async def test_a_reachable_vendor(taken_port: int) -> None:
    """A host that takes the connection is reachable; nothing is sent to it."""
    check = await vendor_checks.reach("kimi", f"http://127.0.0.1:{taken_port}/v1")
    assert (check.status, check.message) == ("ok", f"127.0.0.1:{taken_port} accepts connections")


async def test_an_unreachable_vendor() -> None:
    """A closed port is reported with host and port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    check = await vendor_checks.reach("glm", f"http://127.0.0.1:{port}/")
    assert check.status == "fail"
    assert f"127.0.0.1:{port}" in check.message
    assert "glm_base_url" in (check.remedy or "")


async def test_a_vendor_that_does_not_answer(taken_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that takes the connection and never ends the TLS handshake is given up after the bound."""
    monkeypatch.setattr(vendor_checks, "REACH_TIMEOUT_S", 0.05)
    check = await vendor_checks.reach("glm", f"https://127.0.0.1:{taken_port}/")
    assert check.status == "fail"
    assert "did not answer within 0.05 s" in check.message


async def test_a_vendor_behind_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a proxy carries the requests, a connection of our own would say nothing."""
    monkeypatch.setattr("urllib.request.getproxies", lambda: {"https": "http://proxy"})
    monkeypatch.setattr("urllib.request.proxy_bypass", lambda _: False)
    assert "skipped" in (await vendor_checks.reach("glm", "https://192.0.2.1/")).message
