"""The ids of secrets in Google Secret Manager, by principal and service. Pure.

An id has only ``A-Za-z0-9_-``, and different principals have different ids. A gateway's user appears with its own id,
as in toold's predecessor; each byte of other characters becomes ``_`` and two hexadecimal digits. Any other principal
begins with ``_``, as no user does.
"""

import hashlib
import re
from typing import Final

from ..protocol.user_credential import SERVICE_NAME

_USER: Final = "user:"
_MAX_CHARS: Final = 120
"""The maximum length of an encoded user; the id of a secret has at most 255 characters."""
_OTHER: Final = re.compile(r"[^A-Za-z0-9-]|-(?=-)|(?<=-)-|^-|-$")
"""Includes hyphens, except single ones inside: ``--`` ends the user."""


def encoded_user(principal: str) -> str:
    """The part of an id that stands for a principal."""
    of_gateway = principal.startswith(_USER)
    encoded = _encoded(principal.removeprefix(_USER)) if of_gateway else f"_{_encoded(principal)}"
    if len(encoded) > _MAX_CHARS:
        return f"__{hashlib.sha256(principal.encode()).hexdigest()}"
    return encoded


def secret_id(template: str, principal: str, service: str) -> str:
    """The id of the secret with a principal's credential for a service."""
    return template.replace("{user}", encoded_user(principal)).replace("{service}", service)


def name_filter(template: str, principal: str) -> str:
    """The filter of Secret Manager for the secrets of a principal. Its API can only search for text in names. The
    filter has all of the name except the service, so that a user with a short id does not match all users.
    ``service_of`` then excludes the secrets of others.
    """
    parts = template.replace("{user}", encoded_user(principal)).split("{service}")
    return " AND ".join(f"name:{part}" for part in parts if part)


def service_of(template: str, principal: str, found: str) -> str | None:
    """The service of a secret with this id; None if it is not a credential of the principal."""
    before, _, after = template.replace("{user}", encoded_user(principal)).partition("{service}")
    if len(found) <= len(before) + len(after) or not (found.startswith(before) and found.endswith(after)):
        return None
    service = found[len(before) : len(found) - len(after)]
    return service if SERVICE_NAME.fullmatch(service) else None


def _encoded(name: str) -> str:
    return _OTHER.sub(lambda match: "".join(f"_{byte:02x}" for byte in match[0].encode()), name)
