"""How many files, and so connections, a process may have open."""

import resource


def raise_file_limit() -> int:
    """Allow this process and those that it starts as many open files as the system lets them; how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = 2**16 if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= allowed:
        return allowed
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
