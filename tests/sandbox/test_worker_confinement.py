"""The confinement of worker processes, tried from within: programs that would have escaped the interpreter."""

import errno
import json
import os
import re
import resource
import struct
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import psutil
import pytest
from toold.sandbox import Sandbox, worker_confinement
from toold.sandbox.worker_confinement import MACHINES, available, file_rights, system_call_filter
from toold.sandbox.worker_launcher import needed_files

OFFERED = available()
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines processes")

ATTEMPTS = """
import ctypes, errno, json, os, resource, socket, sys
system = ctypes.CDLL(None, use_errno=True)
given = json.loads(sys.argv[1])

def open_file(path, flags=os.O_RDONLY): os.close(os.open(path, flags, 0o600))
def call(*numbers):
    if system.syscall(*numbers) < 0: raise OSError(ctypes.get_errno(), "")

attempts = {
    "read a secret": lambda: open_file(given["secret"]),
    "read the passwords": lambda: open_file("/etc/passwd"),
    "read a process": lambda: open_file("/proc/self/environ"),
    "list a directory": lambda: os.listdir("/"),
    "write a file": lambda: open_file(given["new"], os.O_WRONLY | os.O_CREAT),
    "change a file": lambda: open_file(given["secret"], os.O_WRONLY),
    "remove a file": lambda: os.unlink(given["secret"]),
    "execute a program": lambda: os.execv("/bin/sh", ["sh", "-c", "exit 0"]),
    "open an internet socket": lambda: socket.socket(socket.AF_INET),
    "open a Unix socket": lambda: socket.socket(socket.AF_UNIX),
    "make a pair of sockets": socket.socketpair,
    "start a process": os.fork,
    "signal the daemon": lambda: os.kill(given["pid"], 0),
    "trace the daemon": lambda: call(given["ptrace"], 16, given["pid"], 0, 0),
    "use io_uring": lambda: call(425, 1, None),
    "raise a limit": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (10**5, 10**5)),
}
found = {}
for name, attempt in attempts.items():
    try:
        attempt()
        found[name] = "done"
    except (OSError, ValueError) as error:
        found[name] = errno.errorcode.get(getattr(error, "errno", None), "refused")
found["limits"] = [resource.getrlimit(one)[0] for one in given["limits"]]
found["ids"] = [os.getuid(), os.getgid()]
found["threads"] = __import__("_thread").start_new_thread(lambda: None, ()) > 0
print(json.dumps(found))
"""
FILES = ("read a secret", "read the passwords", "read a process", "list a directory", "write a file", "change a file",
         "remove a file", "execute a program")  # fmt: skip
CALLS = ("open an internet socket", "open a Unix socket", "make a pair of sockets", "start a process",
         "signal the daemon", "trace the daemon", "use io_uring")  # fmt: skip
LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE, resource.RLIMIT_NOFILE)


@linux
@pytest.mark.process
def test_a_confined_process_reaches_nothing(tmp_path: Path) -> None:
    """It opens no file and no socket, starts, signals and traces no process, and cannot raise its limits; it has no
    descriptor of the daemon, and may start threads."""
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    secret.chmod(0o666)
    tmp_path.chmod(0o777)
    python = os.path.realpath(sys.executable)
    modules = ("/lib", "/lib64", "/usr/lib", sysconfig.get_path("stdlib"), sysconfig.get_config_var("LIBDIR"))
    known_values = {"secret": str(secret), "new": str(tmp_path / "new"), "pid": os.getpid(), "limits": LIMITS,
             "ptrace": 101 if os.uname().machine == "x86_64" else 117}  # fmt: skip
    with secret.open() as inherited:
        os.set_inheritable(inherited.fileno(), True)
        ended = subprocess.run(
            [sys.executable, "-I", "-S", worker_confinement.__file__, str(2**32), "60", python, *needed_files(python),
             *modules, "--", "-I", "-S", "-c", ATTEMPTS, json.dumps(known_values)],
            capture_output=True, text=True, check=False, close_fds=False,
        )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    result = json.loads(ended.stdout)
    refused = {name: result[name] for name in result if result[name] in ["EACCES", "EPERM", "refused"]}
    expected = [*(FILES if OFFERED.landlock else ()), *(CALLS if OFFERED.seccomp else ()), "raise a limit"]
    assert set(refused) >= set(expected)
    assert result["limits"] == [2**32, 60, 0, 0, 64]
    assert result["threads"]
    assert secret.read_text() == "s3cret"
    assert not (tmp_path / "new").exists()


@linux
@pytest.mark.asyncio(loop_scope="module")
async def test_workers_are_confined(make: Any, run_in: Any) -> None:
    """The engine's worker runs programs, has the confinement that the system offers, and no rights of root."""
    sandbox: Sandbox = make(programs=1)
    assert await run_in(sandbox)("import re, json\nreturn json.dumps([len(re.findall('a', 'banana'))])") == "[3]"
    (worker,) = [child for child in psutil.Process().children() if "monty" in " ".join(child.cmdline())]
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{worker.pid}/status").read_text().splitlines() if ":\t" in line
    )
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == ("2" if OFFERED.seccomp else "0")
    limits = Path(f"/proc/{worker.pid}/limits").read_text()
    assert re.search(r"Max file size +0 +0", limits)
    assert re.search(r"Max core file size +0 +0", limits)
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
    assert (worker.uids().real == os.geteuid()) is not OFFERED.own_user


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_the_filter_decides_by_number(machine: worker_confinement.Machine) -> None:
    """Denied calls and processes fail with EPERM, threads and other calls pass, and other architectures are killed."""
    allow, kill, denied, absent = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
    for number in range(1024):
        expected = denied if number in {*machine.denied, machine.clone} else allow
        if number == machine.clone3:
            expected = absent
        assert decision(machine, machine.audit, number) == expected, number
    assert decision(machine, machine.audit, machine.clone, flags=0x00010F00) == allow
    assert decision(machine, machine.audit, 0x40000000) == denied
    assert decision(machine, 0x40000003, 1) == kill
    assert (
        len(set(machine.denied))
        == len(machine.denied)
        == len(MACHINES["x86_64"].denied)
        - 2
        * (
            machine is not MACHINES["x86_64"]  # which has no fork and vfork
        )
    )


def decision(machine: worker_confinement.Machine, architecture: int, number: int, flags: int = 0) -> int:
    """What the kernel decides, by an interpreter of the few instructions that the filter has."""
    code = system_call_filter(machine)
    program = [struct.unpack_from("HBBI", code, start) for start in range(0, len(code), 8)]
    words, value, at = {0: number, 4: architecture, 16: flags}, 0, 0
    while True:
        kind, true, false, operand = program[at]
        at += 1
        match kind:
            case 0x20:
                value = words[operand]
            case 0x15:
                at += true if value == operand else false
            case 0x35:
                at += true if value >= operand else false
            case 0x45:
                at += true if value & operand else false
            case 0x06:
                return int(operand)


def test_each_landlock_version_denies_all_that_it_knows() -> None:
    """Versions 1, 2, 3 and 5 added rights; later ones did not."""
    assert [file_rights(version).bit_count() for version in range(8)] == [0, 13, 14, 15, 15, 16, 16, 16]
