"""The limit of open files, and so of connections."""

import resource


def raise_file_limit() -> int:
    """Raise the limit of open files to the system's maximum for this process and its children. Returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = 2**16 if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= allowed:
        return allowed
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
