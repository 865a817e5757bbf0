"""The form of a credential: the names of its service and fields, and bounds on their values. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..protocol.error_codes import InvalidArgumentsError
from ..protocol.user_credential import FIELD_NAME, SERVICE_NAME

MAX_SERVICES: Final = 50
"""The maximum number of services of one principal."""
MAX_FIELDS: Final = 20
"""The maximum number of fields of one credential."""
MAX_CREDENTIAL_BYTES: Final = 64 * 1024
"""The maximum size of a credential as JSON; equal to the limit of a secret in Google Secret Manager. A Google service
account takes 2.5 KB."""
MIN_VALUE_CHARS: Final = 4
"""Shorter values could not be masked, since they also occur in other text (``ValueMask``)."""


class CredentialEntry(msgspec.Struct, frozen=True):
    """The parts of a credential that may be shown."""

    service_type: str
    fields: tuple[str, ...]
    """The names of its fields."""
    updated_at: str | None
    """In ISO 8601, UTC; None if the vault does not record it."""


def check_service(service: object) -> str:
    """Returns the name of a service.

    Raises:
        InvalidArgumentsError: the name is invalid.
    """
    if isinstance(service, str) and SERVICE_NAME.fullmatch(service):
        return service
    raise _invalid("service_type", "must be 1 to 63 characters of a-z, 0-9, _ and single hyphens within, such as jira")


def read_fields(credentials: object) -> dict[str, str]:
    """Returns the fields of a credential and their values. No error contains a value.

    Raises:
        InvalidArgumentsError: they are invalid.
    """
    if not isinstance(credentials, Mapping) or not 0 < len(credentials) <= MAX_FIELDS:
        raise _invalid("credentials", f"must be an object with 1 to {MAX_FIELDS} fields")
    for name, value in credentials.items():
        if not FIELD_NAME.fullmatch(name):
            what = (
                "must have names of fields of a letter or _ and up to 63 more of A-Z, a-z, 0-9 and _, such as api_key"
            )
            raise _invalid("credentials", what)
        if not isinstance(value, str) or len(value.strip()) < MIN_VALUE_CHARS:
            why = f"must be text of at least {MIN_VALUE_CHARS} characters, apart from spaces around it"
            raise _invalid(f"credentials.{name}", why)
        if "\0" in value or not _is_unicode(value):
            raise _invalid(f"credentials.{name}", "must be Unicode text without null characters")
    fields: dict[str, Any] = dict(credentials)
    if len(msgspec.json.encode(fields)) > MAX_CREDENTIAL_BYTES:
        raise _invalid("credentials", f"must be at most {MAX_CREDENTIAL_BYTES:,} bytes as JSON")
    return fields


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _invalid(field: str, problem: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(f"{field} {problem}.", details={"fields": {field: problem}})
