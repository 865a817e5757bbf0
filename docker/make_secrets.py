#!/usr/bin/env python3
"""Creates the secrets for compose.yaml and cluster/compose.yaml in docker/secrets/, one file each. Existing files stay.

The files are world-readable, because the containers read them as other users; only the owner can enter the directory.
"""

import base64
import hashlib
import hmac
import json
import secrets
import sys
from pathlib import Path

DIRECTORY = Path(__file__).resolve().parent / "secrets"


def make(directory: Path) -> list[str]:
    """Create the missing files in ``directory``; returns their names."""
    directory.mkdir(mode=0o700, exist_ok=True)
    created: list[str] = []

    def secret(name: str, value: str) -> str:
        path = directory / name
        if not path.exists():
            path.write_text(value, "utf-8")
            path.chmod(0o444)
            created.append(name)
        return path.read_text("utf-8")

    secret("token", secrets.token_urlsafe(32))
    secret("pages_password", secrets.token_urlsafe(16))
    postgres = secret("postgres_password", secrets.token_urlsafe(32))
    secret("store", f"postgresql://postgres:{postgres}@postgres:5432/toold")
    secret("cluster_secret", secrets.token_urlsafe(32))
    secret("audit_key", secrets.token_hex(32))
    password = secret("authenticator_password", secrets.token_urlsafe(32))
    secret("postgrest_uri", f"postgresql://authenticator:{password}@postgres:5432/postgres")
    signing = secret("jwt_secret", secrets.token_urlsafe(48))
    secret("service_role_key", signed({"role": "service_role", "iss": "toold"}, signing))
    return created


def signed(claims: dict[str, str], secret: str) -> str:
    """A JSON Web Token (HS256), the format of Supabase's keys, which PostgREST accepts."""
    head, body = (_base64(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    mac = hmac.new(secret.encode(), f"{head}.{body}".encode(), hashlib.sha256).digest()
    return f"{head}.{body}.{_base64(mac)}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


if __name__ == "__main__":
    new = make(DIRECTORY)
    sys.stdout.write(f"{DIRECTORY}: {', '.join(new) if new else 'all secrets exist'}\n")
