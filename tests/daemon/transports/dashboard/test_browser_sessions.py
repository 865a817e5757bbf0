"""The file of browser sessions, and the rate of sign-ins."""

import time
from pathlib import Path

from toold.daemon.transports.dashboard.browser_sessions import (
    MAX_SESSIONS,
    MAX_SESSIONS_PER_TOKEN,
    SESSION_S,
    BrowserSessions,
)
from toold.daemon.transports.dashboard.sign_in_rate import ATTEMPTS_PER_MINUTE, SignInRate


def test_attempts_are_limited_by_address() -> None:
    """After ATTEMPTS_PER_MINUTE attempts an address has to wait; another address has not."""
    rate = SignInRate()
    assert [rate.wait_s("a") for _ in range(ATTEMPTS_PER_MINUTE)] == [0.0] * ATTEMPTS_PER_MINUTE
    assert rate.wait_s("a") > 0
    assert rate.wait_s("b") == 0


def test_sessions_outlive_a_restart_and_expire(tmp_path: Path) -> None:
    """The file has no secret, is private, and a session of it ends after SESSION_S."""
    now = [1e9]
    path = tmp_path / "sessions.json"
    secret = BrowserSessions(path, clock=lambda: now[0]).create("0" * 64)
    assert path.stat().st_mode & 0o777 == 0o600
    assert secret not in path.read_text()
    restarted = BrowserSessions(path, clock=lambda: now[0])
    assert restarted.find(secret) is not None
    now[0] += SESSION_S
    assert restarted.find(secret) is None


def test_the_number_of_sessions_is_bounded(tmp_path: Path) -> None:
    """Beyond MAX_SESSIONS, the session that ends first is signed out."""
    now = [1e9]
    sessions = BrowserSessions(tmp_path / "sessions.json", clock=lambda: now[0])
    secrets = []
    for number in range(MAX_SESSIONS + 1):
        now[0] += 1
        secrets.append(sessions.create(f"{number:064}"))
    assert sessions.find(secrets[0]) is None
    assert all(sessions.find(secret) for secret in secrets[1:])


def test_an_unreadable_file_signs_all_out(tmp_path: Path) -> None:
    """A damaged file does not keep the daemon from starting."""
    path = tmp_path / "sessions.json"
    path.write_text("[{")
    sessions = BrowserSessions(path, clock=time.time)
    assert sessions.find(sessions.create("0" * 64)) is not None


def test_a_token_signs_out_its_own_browsers_only(tmp_path: Path) -> None:
    """Beyond MAX_SESSIONS_PER_TOKEN, the oldest browser of the same token is signed out, and none of another token."""
    now = [1e9]
    sessions = BrowserSessions(tmp_path / "sessions.json", clock=lambda: now[0])
    other = sessions.create("1" * 64)
    secrets = []
    for _ in range(MAX_SESSIONS_PER_TOKEN + 1):
        now[0] += 1
        secrets.append(sessions.create("0" * 64))
    assert sessions.find(secrets[0]) is None
    assert sessions.find(secrets[1]) is not None
    assert sessions.find(other) is not None
