"""Confines a process before it becomes a sandbox worker, so that a program that escapes the engine's interpreter cannot
use files, sockets, other processes or the rights of the daemon's user.

Run as a program by ``worker_launcher.py``: it confines itself and then replaces itself with the worker. Uses the
standard library only, since it runs without the environment. Measures that the system lacks are skipped; ``available``
lists the supported ones.
"""

import ctypes
import errno
import os
import resource
import struct
import sys
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

NOBODY: Final = 65534
"""The user and group of workers, if the daemon runs as root: the kernel's overflow id, which owns nothing."""
MAX_OPEN_FILES: Final = 64
"""A worker uses about ten."""

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
"""System calls, with the same numbers on all machines (linux/unistd.h)."""
_FILE_RIGHTS: Final = ((1, 0x1FFF), (2, 1 << 13), (3, 1 << 14), (5, 1 << 15))
"""Version of Landlock → the rights on files that it added (linux/landlock.h)."""
_EXECUTE_AND_READ: Final = 1 << 0 | 1 << 2
_NETWORK_VERSION, _TCP = 4, 3  # binding and connecting
_SCOPE_VERSION, _SCOPES = 6, 3  # abstract Unix sockets and signals

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_FILTER = 38, 22, 2
_PR_CAPBSET_DROP, _PR_SET_SECUREBITS, _NOROOT_LOCKED = 24, 28, 3
_CLONE_THREAD: Final = 0x00010000
_NEWER_CALLS: Final = (
    424, 425, 426, 427, 428, 429, 430, 431, 432, 433, 434, 438, 440, 442, 447,
)  # fmt: skip
"""pidfd_send_signal, io_uring_setup, _enter, _register, open_tree, move_mount, fsopen, fsconfig, fsmount, fspick,
pidfd_open, pidfd_getfd, process_madvise, mount_setattr, memfd_secret: the same numbers on all machines.
"""


class Machine(NamedTuple):
    """The numbers of one processor architecture (asm/unistd.h)."""

    audit: int
    """AUDIT_ARCH_…: a program must not make calls of another architecture, whose numbers differ."""
    clone: int
    clone3: int
    denied: tuple[int, ...]


MACHINES: Final = {
    "x86_64": Machine(
        0xC000003E,
        56,
        435,
        (
            41, 42, 43, 49, 50, 53, 288,  # socket, connect, accept, bind, listen, socketpair, accept4
            57, 58, 62, 200, 101,  # fork, vfork, kill, tkill, ptrace
            29, 30, 31, 64, 68, 240,  # shmget, shmat, shmctl, semget, msgget, mq_open
            135, 155, 161, 165, 166, 167, 168,  # personality, pivot_root, chroot, mount, umount2, swapon, swapoff
            169, 175, 176, 246, 313, 320,  # reboot, init_module, delete_module, kexec_load, finit_…, kexec_file_load
            248, 249, 250, 272, 298, 303, 304,  # add_key, request_key, keyctl, unshare, perf_event_open, …_handle(_at)
            308, 310, 311, 312, 319, 321, 323,  # setns, process_vm_…, kcmp, memfd_create, bpf, userfaultfd
            *_NEWER_CALLS,
        ),
    ),
    "aarch64": Machine(
        0xC00000B7,
        220,
        435,
        (
            198, 203, 202, 200, 201, 199, 242,
            129, 130, 117,
            194, 196, 195, 190, 186, 180,
            92, 41, 51, 40, 39, 224, 225,
            142, 105, 106, 104, 273, 294,
            217, 218, 219, 97, 241, 264, 265,
            268, 270, 271, 272, 279, 280, 282,
            *_NEWER_CALLS,
        ),
    ),
}  # fmt: skip
"""Architecture → its numbers, in the same order."""


class Confinement(NamedTuple):
    """The system's means to confine a worker."""

    landlock: int
    """The version of Landlock, which denies files; 0 if there is none."""
    seccomp: bool
    """System calls can be denied: sockets, processes, and calls that administer the system."""
    own_user: bool
    """The daemon runs as root, so its workers run as another user, or at least without root's rights."""


def available() -> Confinement:
    """Returns the confinement that this system offers. Changes nothing."""
    if sys.platform != "linux":
        return Confinement(0, seccomp=False, own_user=False)
    system = ctypes.CDLL(None, use_errno=True)
    landlock = max(0, system.syscall(_LANDLOCK_CREATE, None, 0, 1))
    # PR_GET_SECCOMP (21) fails if seccomp is missing.
    seccomp = os.uname().machine in MACHINES and system.prctl(21, 0, 0, 0, 0) >= 0
    return Confinement(landlock, seccomp=seccomp, own_user=os.geteuid() == 0)


def system_call_filter(machine: Machine) -> bytes:
    """Returns a seccomp filter: denied calls fail with EPERM, as do new processes; new threads are allowed. Pure.

    ``clone3`` does not exist for the worker, because a filter cannot see its flags: libraries then use ``clone``.
    """
    load, equal, at_least, any_bit, end = 0x20, 0x15, 0x35, 0x45, 0x06
    kill, allow, fail = 0x80000000, 0x7FFF0000, 0x00050000
    count = len(machine.denied)
    program = [
        (load, 0, 0, 4),  # the architecture
        (equal, 1, 0, machine.audit),
        (end, 0, 0, kill),
        (load, 0, 0, 0),  # the number of the call
        (at_least, count + 3, 0, 0x40000000),  # x32
        (equal, count + 3, 0, machine.clone3),
        (equal, count + 3, 0, machine.clone),
        *((equal, count - position, 0, number) for position, number in enumerate(machine.denied)),
        (end, 0, 0, allow),
        (end, 0, 0, fail | errno.EPERM),
        (end, 0, 0, fail | errno.ENOSYS),
        (load, 0, 0, 16),  # clone's flags
        (any_bit, 0, 1, _CLONE_THREAD),
        (end, 0, 0, allow),
        (end, 0, 0, fail | errno.EPERM),
    ]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)


def file_rights(version: int) -> int:
    """Returns all rights on files that a version of Landlock knows, as bits; it cannot deny others. Pure."""
    return sum(rights for since, rights in _FILE_RIGHTS if version >= since)


def confine(readable: Iterable[str], limits: Iterable[tuple[int, int]]) -> None:
    """Confines this process and the programs that it executes. Only ``readable`` files and directories can be read or
    executed.

    Raises:
        OSError: the system offers a confinement and refuses it.
    """
    offered = available()
    system = ctypes.CDLL(None, use_errno=True)
    paths = [path for path in readable if os.path.exists(path)]  # noqa: PTH110 - a string, no pathlib here
    rules = _landlock_rules(system, offered.landlock, paths) if offered.landlock else -1
    for kind, most in limits:
        _, hard = resource.getrlimit(kind)
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (bound, bound))
    if os.geteuid() == 0:
        change_user = _readable_by_nobody(paths)
        _drop_rights_of_root(system)
        if change_user:
            _become_nobody()
    _checked(system.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    if rules >= 0:
        _checked(system.syscall(_LANDLOCK_RESTRICT, rules, 0))
        os.close(rules)
    if offered.seccomp:
        code = system_call_filter(MACHINES[os.uname().machine])
        buffer = ctypes.create_string_buffer(code, len(code))
        program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer)))
        _checked(system.prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, program, 0, 0))


def _landlock_rules(system: ctypes.CDLL, version: int, readable: Iterable[str]) -> int:
    """Returns a descriptor of rules that deny everything but reading and executing these paths."""
    network = _TCP if version >= _NETWORK_VERSION else 0
    scopes = _SCOPES if version >= _SCOPE_VERSION else 0
    size = 24 if scopes else 16 if network else 8  # an older kernel refuses fields that it does not know
    attributes = ctypes.create_string_buffer(struct.pack("QQQ", file_rights(version), network, scopes))
    rules = _checked(system.syscall(_LANDLOCK_CREATE, attributes, ctypes.c_size_t(size), 0))
    for path in readable:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rights = _EXECUTE_AND_READ | (1 << 3 if os.path.isdir(path) else 0)  # noqa: PTH112 - a string, no pathlib here
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, descriptor))
        _checked(system.syscall(_LANDLOCK_ADD, rules, 1, rule, 0))
        os.close(descriptor)
    return rules


def _readable_by_nobody(paths: Iterable[str]) -> bool:
    """Whether another user could load the worker's libraries, which is false, for example, below ``/root``.

    The binary, the first path, is opened earlier.
    """
    try:
        os.seteuid(NOBODY)
    except OSError:  # a container without this user
        return False
    try:
        return all(os.access(path, os.R_OK, effective_ids=True) for path in list(paths)[1:])
    finally:
        os.seteuid(0)


def _become_nobody() -> None:
    """Changes the user. In a container without this user, the worker keeps the daemon's."""
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.EPERM}:
            raise


def _drop_rights_of_root(system: ctypes.CDLL) -> None:
    """Drops all capabilities, also for programs that root executes. Errors are ignored: they mean that a capability
    does not exist or was already given up."""
    system.prctl(_PR_SET_SECUREBITS, _NOROOT_LOCKED, 0, 0, 0)
    for capability in range(64):
        system.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def _checked(returned: int) -> int:
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return returned


def _close_inherited() -> None:
    """Closes all descriptors except the standard streams. Does not use ``closerange``: without its system call, that
    would try each number up to the limit, which can be a billion.
    """
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - no pathlib here
        if int(name) > 2:
            try:
                os.close(int(name))
            except OSError:  # the listing's own descriptor, which is closed already
                continue


def main(words: Sequence[str]) -> None:
    """``MEMORY_BYTES CPU_S BINARY [READABLE…] -- [ARGUMENT…]``: confines this process and executes the binary."""
    memory, cpu_s, binary, *rest = words
    readable, arguments = rest[: rest.index("--")], rest[rest.index("--") + 1 :]
    _close_inherited()
    # Opened now: the worker's user may not be able to reach the path.
    descriptor = os.open(binary, os.O_RDONLY | os.O_CLOEXEC)
    limits = (
        (resource.RLIMIT_AS, int(memory)),
        (resource.RLIMIT_CPU, int(cpu_s)),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, MAX_OPEN_FILES),
    )
    confine([binary, *readable], limits)
    try:
        os.execve(binary, [binary, *arguments], {})  # noqa: S606 - the operator's binary
    except PermissionError:
        # The program's name in process lists is then a number.
        os.execve(descriptor, [binary, *arguments], {})  # noqa: S606 - as above


if __name__ == "__main__":
    main(sys.argv[1:])
