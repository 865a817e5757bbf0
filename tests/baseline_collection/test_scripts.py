"""The scripts: collecting, interruption by a signal or a crash, continuing, comparing, reporting, and invalid input.

Tests of signals, crashes and whole sequences start the scripts as processes. Others call their ``main``, and use one
daemon for all runs that start none.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from toold.client import client_link

from baseline.matrix import SHIPPED, workspace_of
from baseline.own_daemon import OwnDaemon, environment_for, own_daemon

SCRIPTS = Path(__file__).parents[2] / "scripts/baseline_collection"
PATIENCE_S = 120.0

MATRIX = """
[tools.echo]
arguments = { text = "a line", delay_ms = 20 }
[tools.version]
[tools.chat]
skip = "for a test"
"""

Script = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate directory with a matrix, whose environment has no daemon."""
    (tmp_path / "matrix.toml").write_text(MATRIX)
    (tmp_path / "python").mkdir()
    # Daemons that a script starts do not inherit our settings. SDKs and the warm-up would double the cost of a start.
    settings = {"TOOLD_WARM_UP": "false", "TOOLD_KIMI_SDK": "http", "TOOLD_GLM_SDK": "http"}
    (tmp_path / "python/sitecustomize.py").write_text(f"import os\nos.environ.update({settings})\n")
    env = environment_for(os.environ, tmp_path) | {
        "TOOLD_STATE_DIR": str(tmp_path / "no-daemon"),
        # Without a repository, since a commit made during the test would prevent the run from being continued.
        "GIT_DIR": str(tmp_path / "no-repository"),
        "PYTHONPATH": str(tmp_path / "python"),
    }
    for name in os.environ.keys() - env.keys():
        monkeypatch.delenv(name)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def shared_daemon(starts_processes: None) -> Iterator[OwnDaemon]:
    """One simulated daemon per worker."""
    with own_daemon(workspace_of(SHIPPED)) as own:
        yield own


@pytest.fixture
def at_shared(shared_daemon: OwnDaemon, directory: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The options of a quick run of ``collect.py`` with the shared daemon."""
    assert shared_daemon.token is not None
    monkeypatch.setenv("TOOLD_TOKEN", shared_daemon.token)
    return ("--daemon", shared_daemon.url, "--matrix", "matrix.toml", "--warmup", "0")


@pytest.fixture
def call_main(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., tuple[int, str, str]]]:
    """Call a script's ``main``: exit code, stdout, stderr. Restores the signal handlers that it sets."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def call(script: str, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        try:
            code = import_module(script.removesuffix(".py")).main()
        except SystemExit as end:
            code = end.code
        out, err = capsys.readouterr()
        return code, out, err

    yield call
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def start(starts_processes: None, directory: Path) -> Iterator[Script]:
    """Start a script as a process. Scripts that still run at the end are killed."""
    started: list[subprocess.Popen[str]] = []

    def begin(script: str, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPTS / script), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def run(start: Script) -> Callable[..., tuple[int, str, str]]:
    """Run a script to its end: exit code, stdout, stderr."""

    def to_end(script: str, *arguments: str) -> tuple[int, str, str]:
        process = start(script, *arguments)
        out, err = process.communicate(timeout=PATIENCE_S)
        return process.returncode, out, err

    return to_end


Run = Callable[..., tuple[int, str, str]]
QUICK = ("--simulate", "--matrix", "matrix.toml", "--warmup", "0")


def record(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return document


def wait_for_calls(process: subprocess.Popen[str], draft: Path, number: int) -> None:
    """Wait until the draft of a running script has more than ``number`` lines."""
    give_up = time.monotonic() + PATIENCE_S
    while not draft.exists() or len(draft.read_bytes().splitlines()) <= number:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < give_up, "no calls were made"
        time.sleep(0.01)


def test_run_report_and_comparison(tmp_path: Path, run: Run, at_shared: tuple[str, ...]) -> None:
    """A simulated run writes one record that is marked as simulated and can be reported and compared."""
    code, _, err = run("collect.py", *at_shared, "--iterations", "10", "--out", "a.json")
    assert code == 0, err
    made = record(tmp_path / "a.json")
    assert (made["complete"], made["simulated"], len(made["calls"])) == (True, True, 20)
    assert {"tool_name": "chat", "reason": "for a test"} in made["skipped"]
    assert "SIMULATED" in err
    assert not (tmp_path / "a.ndjson").exists()
    code, out, err = run("report.py", "a.json")
    assert (code, out) == (0, "a-report/index.html\n"), err
    assert "SIMULATED" in (tmp_path / "a-report/index.html").read_text("utf-8")
    code, out, err = run("compare.py", "a.json", "a.json", "--json", "c.json")
    assert code == 0, err
    assert "**SIMULATED" in out
    assert [one["simulated"] for one in json.loads((tmp_path / "c.json").read_text())] == [True]


@pytest.mark.process
def test_simulated_run_is_marked_for_any_toolset(tmp_path: Path, call_main: Run) -> None:
    """A run against a daemon that it started is marked as simulated, even if no listed tool shows it."""
    (tmp_path / "code.toml").write_text('[tools.execute_code]\narguments = { code = "return 1" }\n')
    asked = ("--matrix", "code.toml", "--toolset", "code", "--tools", "execute_code", "--iterations", "1")
    code, _, err = call_main("collect.py", "--simulate", *asked, "--warmup", "0", "--out", "code.json")
    assert (code, record(tmp_path / "code.json")["simulated"], "SIMULATED" in err) == (0, True, True), err


def test_interrupted_run_writes_a_record(tmp_path: Path, start: Script, run: Run, at_shared: tuple[str, ...]) -> None:
    """SIGINT, SIGTERM and SIGHUP end a run with exit code 130 and a record of the calls so far. The run can be
    continued each time until it is complete.
    """
    process = start("collect.py", *at_shared, "--tools", "echo", "--iterations", "200", "--out", "cut.json")
    wait_for_calls(process, tmp_path / "cut.ndjson", 5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "--continue cut.ndjson --matrix matrix.toml" in err
    cut = record(tmp_path / "cut.json")
    assert cut["complete"] is False
    assert 5 <= len(cut["calls"]) == cut["summaries"][0]["count"] < 200
    ends = [signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it
        ends.append(signal.SIGHUP)
    for end in ends:
        process = start("collect.py", "--continue", "cut.ndjson", "--matrix", "matrix.toml")
        wait_for_calls(process, tmp_path / "cut.ndjson", len(record(tmp_path / "cut.json")["calls"]) + 1)
        process.send_signal(end)
        _, err = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, "--continue cut.ndjson" in err) == (130, True), err
    code, _, err = run("collect.py", "--continue", "cut.ndjson", "--matrix", "matrix.toml")
    assert code == 0, err
    whole = record(tmp_path / "cut.json")
    assert (whole["id"], whole["complete"]) == (cut["id"], True)
    assert sorted(call["iteration"] for call in whole["calls"]) == list(range(1, 201))
    assert [call for call in whole["calls"] if call["segment"] == 1] == cut["calls"]
    assert not (tmp_path / "cut.ndjson").exists()


def test_crash_loses_no_ended_call(tmp_path: Path, start: Script, run: Run) -> None:
    """After SIGKILL the draft has all calls that had ended, and the run can be continued."""
    process = start("collect.py", *QUICK, "--tools", "echo", "--iterations", "40", "--out", "cut.json")
    draft = tmp_path / "cut.ndjson"
    wait_for_calls(process, draft, 3)
    # The daemon is a separate process and would outlive the crash.
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True
    )
    process.kill()
    process.wait()
    for child in children.stdout.split():
        os.kill(int(child), signal.SIGTERM)
    code, _, err = run("collect.py", *QUICK, "--tools", "echo", "--out", "cut.json")
    assert (code, "--continue cut.ndjson" in err) == (2, True)
    code, _, err = run("collect.py", "--continue", "cut.ndjson", "--matrix", "matrix.toml")
    assert code == 0, err
    calls = record(tmp_path / "cut.json")["calls"]
    assert sorted(call["iteration"] for call in calls) == list(range(1, 41))
    assert {call["segment"] for call in calls} == {1, 2}


def test_daemon_that_dies_ends_the_run(tmp_path: Path, start: Script) -> None:
    """If the daemon dies, the run ends with exit code 3 and a record; the call that was running is a failure."""
    process = start("collect.py", *QUICK, "--tools", "echo", "--iterations", "500", "--out", "gone.json")
    wait_for_calls(process, tmp_path / "gone.ndjson", 3)
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True
    )
    for child in children.stdout.split():
        os.kill(int(child), signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 3, err
    assert "the daemon stopped" in err
    errors = [call["error_code"] for call in record(tmp_path / "gone.json")["calls"]]
    assert set(errors[:-1]) == {None}
    assert errors[-1] in {None, "CONNECTION_LOST"}


def test_slower_daemon_is_found(tmp_path: Path, call_main: Run, at_shared: tuple[str, ...]) -> None:
    """A tool that takes 300 ms instead of 20 ms is slower, with exit code 1; with the sides swapped it is faster."""
    common = (*at_shared, "--tools", "echo", "--iterations", "12")
    assert call_main("collect.py", *common, "--out", "fast.json")[0] == 0
    (tmp_path / "slow.toml").write_text(MATRIX.replace("delay_ms = 20", "delay_ms = 300"))
    assert call_main("collect.py", *common, "--matrix", "slow.toml", "--out", "slow.json")[0] == 0
    for name in ("fast", "slow"):  # as if the daemon had changed and not the arguments, on a calm machine
        path = tmp_path / f"{name}.json"
        changed = record(path) | {"contention": 0.0}
        changed["configuration"]["arguments"]["echo"] = {}
        path.write_text(json.dumps(changed))
    code, out, err = call_main("compare.py", "fast.json", "slow.json")
    assert (code, "| **slower** |" in out) == (1, True), out + err
    code, out, err = call_main("compare.py", "slow.json", "fast.json", "--markdown", "c.md")
    assert (code, out) == (0, ""), err
    assert "| **faster** |" in (tmp_path / "c.md").read_text("utf-8")


@pytest.mark.process
def test_two_daemons_alternate(tmp_path: Path, call_main: Run) -> None:
    """The candidate's record has the same calls and names the first record. A repeated trial judges kept records
    without further calls, and repeats only interrupted pairs.
    """
    trial = ("aa.py", "--comparisons", "1", "--pairs", "1", "--tools", "version", "--iterations", "8", "--keep", "aa")
    code, out, err = call_main(*trial)
    assert code == 0, err
    assert out.startswith("  1: no false alarm; ")
    first, second = record(tmp_path / "aa/001-01.json"), record(tmp_path / "aa/001-01-candidate.json")
    assert (second["paired_run"], first["paired_run"]) == (first["id"], None)
    assert len(first["calls"]) == len(second["calls"]) == 8
    assert call_main(*trial)[1] == out
    assert record(tmp_path / "aa/001-01.json") == first
    (tmp_path / "aa/001-01-candidate.ndjson").write_text("as if that had been cut off")
    assert call_main(*trial)[0] == 0
    assert record(tmp_path / "aa/001-01.json")["id"] != first["id"]
    assert not (tmp_path / "aa/001-01-candidate.ndjson").exists()
    code, _, err = call_main(*trial[:-1], "aa", "--iterations", "9")
    assert (code, "another --keep" in err) == (2, True)


@pytest.mark.process
def test_repeated_runs_are_numbered_pairs(tmp_path: Path, call_main: Run) -> None:
    """Repeated runs of two checkouts are numbered pairs with separate daemons, and are compared as pairs."""
    python = tmp_path / "other/.venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    repeated = (
        "collect.py",
        *QUICK,
        "--tools",
        "version",
        "--iterations",
        "3",
        "--candidate",
        "other",
        "--out",
        "r.json",
    )
    code, _, err = call_main(*repeated, "--repeat", "2")
    assert code == 0, err
    names = ["r-01-candidate.json", "r-01.json", "r-02-candidate.json", "r-02.json"]
    assert sorted(path.name for path in tmp_path.glob("r-*")) == names
    daemons = [record(tmp_path / name)["configuration"]["daemon"] for name in names]
    assert daemons == ["checkout", "simulate"] * 2
    assert str(tmp_path) not in (tmp_path / names[0]).read_text("utf-8")
    code, out, err = call_main("compare.py", *names)
    assert code == 0, err
    assert "2 of 2 pairs of runs have 3 successes a side; 6 are the least" in out
    code, _, err = call_main(*repeated, "--repeat", "1")
    assert (code, "r-01.json is there already" in err) == (2, True)


@pytest.mark.parametrize("script", ["collect.py", "compare.py", "report.py", "upload.py", "aa.py"])
def test_help_has_examples(call_main: Run, script: str) -> None:
    """Each script's --help has examples."""
    code, out, _ = call_main(script, "--help")
    assert code == 0
    assert "examples:" in out
    assert f"  {script} " in out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["collect.py", "--iterations", "0"], 2, "integer of at least 1"),
        (["collect.py", "--concurrency", "2", "--rate", "5"], 2, "not allowed with"),
        (["collect.py", "--continue", "a.ndjson", "--iterations", "5"], 2, "remove --iterations"),
        (["collect.py", "--continue", "none.ndjson"], 2, "none.ndjson cannot be read"),
        (["collect.py", "--matrix", "none.toml", "--simulate"], 2, "none.toml cannot be read"),
        (["collect.py", "--daemon", "ws://127.0.0.1:9/", "--matrix", "matrix.toml"], 3, "127.0.0.1:9"),
        (["aa.py", "--slower", "1.2", "--tools", "echo"], 2, "remove --tools"),
        (["collect.py", "--daemon", "http://x/", "--matrix", "matrix.toml"], 2, "is not an address"),
        (["compare.py", "none.json", "none.json"], 2, "none.json cannot be read"),
        (["compare.py", "matrix.toml", "matrix.toml"], 2, "is not a baseline record"),
        (["report.py", "none.json"], 2, "none.json cannot be read"),
        (["upload.py", "none.json"], 1, "set TOOLD_SUPABASE_URL and TOOLD_SUPABASE_SERVICE_ROLE_KEY"),
    ],
)
def test_invalid_input_is_an_error(
    call_main: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, says: str
) -> None:
    """Invalid input is an error message with its exit code and without a traceback."""
    monkeypatch.setattr(client_link, "MAX_DELAY_S", 0.01)  # between the attempts to reach a daemon
    ended, _, err = call_main(*arguments)
    assert ended == code, err
    assert says in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--candidate", "."], "no .venv/bin/python"),
        (["--tools", "ecoh"], "there is no tool to call: ecoh: the daemon does not list it"),
        (["--toolset", "none"], "none"),
    ],
)
def test_run_that_cannot_begin_is_an_error(
    call_main: Run, at_shared: tuple[str, ...], arguments: list[str], says: str
) -> None:
    """A run whose daemons do not have what it calls is an error message with exit code 3."""
    ended, _, err = call_main("collect.py", *at_shared, *arguments)
    assert (ended, says in err) == (3, True), err


@pytest.mark.process
def test_client_can_be_imported(tmp_path: Path) -> None:
    """``mcp_client`` exports the client library, for imports from the scripts' directory and from the checkout's
    root.
    """
    for directory, module in ((SCRIPTS, "mcp_client"), (SCRIPTS.parents[1], "scripts.baseline_collection.mcp_client")):
        code = (
            f"from {module} import MCPWebSocketClient as c; import toold.client as t; assert c is t.MCPWebSocketClient"
        )
        subprocess.run([sys.executable, "-c", code], cwd=directory, check=True)
