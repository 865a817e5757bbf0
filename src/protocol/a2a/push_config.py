"""Push configurations of A2A 1.0 and 0.3: where a client wants to be notified of a task's events. Pure."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from .a2a_error import invalid_field
from .a2a_request import MAX_ID_CHARS, field_of

MAX_URL_CHARS: Final = 2000
MAX_SECRET_CHARS: Final = 4096
NOTIFICATION_HEADER: Final = "x-a2a-notification-token"

_PRINTABLE: Final = re.compile(r"[\x20-\x7e]*")
_URL: Final = re.compile(r"[\x21-\x7e]*")
_SCHEME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,40}")


class PushConfig(NamedTuple):
    """One configuration."""

    url: str
    """Not parsed here: the HTTP client's parser decides which host the URL has (``push_address``)."""
    id: str | None
    headers: dict[str, str]
    """The headers that authenticate the sender; secret."""


def read_push(values: Mapping[str, Any], path: str) -> PushConfig:
    """Reads a configuration of either version.

    Raises:
        A2AError: the configuration is invalid.
    """
    url = field_of(values, "url")
    if not isinstance(url, str) or len(url) > MAX_URL_CHARS or not _URL.fullmatch(url):
        raise invalid_field(f"{path}url", f"must be a URL of up to {MAX_URL_CHARS} ASCII characters without blanks")
    config_id = field_of(values, "id")
    if config_id is not None and (not isinstance(config_id, str) or not 0 < len(config_id) <= MAX_ID_CHARS):
        raise invalid_field(f"{path}id", f"must have 1 to {MAX_ID_CHARS} characters")
    headers: dict[str, str] = {}
    token = _secret(values, "token", path)
    if token:
        headers[NOTIFICATION_HEADER] = token
    authentication = field_of(values, "authentication")
    if authentication is not None:
        headers["authorization"] = _authorization(authentication, path)
    return PushConfig(url, config_id, headers)


def push_config(task_id: str, config_id: str, url: str) -> dict[str, Any]:
    """A configuration in the form of 1.0, without its secrets."""
    return {"taskId": task_id, "id": config_id, "url": url}


def push_config_0_3(config: Mapping[str, Any]) -> dict[str, Any]:
    """Converts a configuration of 1.0 to 0.3."""
    return {"taskId": config["taskId"], "pushNotificationConfig": {"id": config["id"], "url": config["url"]}}


def _authorization(authentication: object, path: str) -> str:
    if not isinstance(authentication, dict):
        raise invalid_field(f"{path}authentication", "must be an object")
    schemes = field_of(authentication, "schemes")
    scheme = schemes[0] if isinstance(schemes, list) and schemes else field_of(authentication, "scheme")
    if not isinstance(scheme, str) or not _SCHEME.fullmatch(scheme):
        raise invalid_field(f"{path}authentication.scheme", "must be an HTTP authentication scheme such as Bearer")
    return f"{scheme} {_secret(authentication, 'credentials', f'{path}authentication.')}".strip()


def _secret(values: Mapping[str, Any], name: str, path: str) -> str:
    value = field_of(values, name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > MAX_SECRET_CHARS or not _PRINTABLE.fullmatch(value):
        raise invalid_field(f"{path}{name}", f"must be text of up to {MAX_SECRET_CHARS} printable ASCII characters")
    return value
