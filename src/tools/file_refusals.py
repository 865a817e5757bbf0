"""The errors for paths that callers may not read, or that are not files. Pure."""

import errno
import os
import stat
from typing import Final

from ..protocol.error_codes import CallError, InvalidArgumentsError, PermissionDeniedError

_SHOWN_PATH_CHARS: Final = 200


def shown_path(path: str) -> str:
    """The path as the caller sent it, truncated."""
    return repr(path if len(path) <= _SHOWN_PATH_CHARS else f"{path[:_SHOWN_PATH_CHARS]}…")


def secret_refused(path: str) -> PermissionDeniedError:
    return PermissionDeniedError(
        f"{shown_path(path)} looks like a secret, which callers cannot read; "
        "the operator can allow it by name in TOOLD_READABLE_SECRETS."
    )


def private_link_refused(path: str, links: int) -> PermissionDeniedError:
    return PermissionDeniedError(
        f"{shown_path(path)} has {links} names (hard links) and is readable by its owner only, so it may be a secret "
        "of another directory; the operator can allow it by name in TOOLD_READABLE_SECRETS, or copy it."
    )


def not_regular(path: str, mode: int) -> InvalidArgumentsError:
    if stat.S_ISDIR(mode):
        return InvalidArgumentsError(f"{shown_path(path)} is a directory; name the files in it.")
    return InvalidArgumentsError(f"{shown_path(path)} is a pipe, socket or device; only regular files are read.")


def path_too_long(path: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(f"{shown_path(path)} is longer than any path can be.")


def refused_by_system(path: str, error: OSError) -> CallError:
    """The operating system's error, without paths of the server."""
    match error.errno:
        case errno.EACCES | errno.EPERM:
            return PermissionDeniedError(
                f"{shown_path(path)} may not be read by the daemon's user; change the file's permissions."
            )
        case errno.ELOOP:
            return InvalidArgumentsError(f"{shown_path(path)} is a circular link, or changed while it was read.")
        case errno.ENXIO:
            return not_regular(path, stat.S_IFSOCK)
        case errno.ENAMETOOLONG:
            return path_too_long(path)
        case _:
            return InvalidArgumentsError(f"{shown_path(path)} cannot be read: {os.strerror(error.errno or errno.EIO)}.")
