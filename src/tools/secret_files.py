"""Detects files that look like secrets: by their names, their first bytes and their links. Pure."""

import re
import stat
from collections.abc import Iterator
from fnmatch import translate
from pathlib import PurePosixPath
from typing import Final

_NAMES: Final = (
    ".env", ".env.*", "*.env", ".envrc", ".dev.vars", "local.settings.json",
    "*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.agekey", "*.ovpn",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "id_*_sk", "*_rsa", "*_dsa", "*_ecdsa", "*_ed25519",
    ".netrc", "_netrc", ".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf", ".npmrc", ".pypirc", ".git-credentials",
    ".htpasswd", ".dockercfg", ".dockerconfigjson", ".s3cfg", ".boto", ".vault-token", ".terraformrc", "terraform.rc",
    "kubeconfig", "kubeconfig[-_]*", "*.kubeconfig", "*kubeconfig.y*ml", "auth.json", "wp-config.php",
    "credentials", "*[-_.]credentials", "accesskeys.csv", "*_accesskeys.csv", "rootkey.csv", ".secret", ".secrets",
    "client_secret*.json", "service-account*.json", "*.tfstate", "*.tfvars", "*.tfvars.json", "toold.toml",
    ".*_history",
)  # fmt: skip
"""File names in lower case."""
_DATA: Final = re.compile(
    r"((.*[-_.])?credentials?|(.*[-_.])?secrets?)\.(txt|csv|json|ya?ml|toml|ini|cfg|conf|xml|properties|tfrc\.json)"
)
"""Data files named after secrets. Code about secrets, such as ``secrets.py``, is readable."""
_EXAMPLES: Final = ("*.example", "*.sample", "*.template", "*.dist")
"""Files that document secrets and contain none."""
_PUBLIC: Final = ("*.pub", "*.pub.*")
"""Public keys."""
_SECRET_NAME: Final = re.compile("|".join(map(translate, _NAMES)))
_HARMLESS_NAME: Final = re.compile("|".join(map(translate, _EXAMPLES + _PUBLIC)))
_COPY: Final = re.compile(
    r"(~|\.~\d+~|\.\d{1,14}"
    r"|\.(bak\d{0,4}|toold-new|back|backup|old|orig|original|save|saved|copy|prev|rej|tmp|sw[a-z]|rpmsave|rpmnew|dpkg-\w+))$"
)
"""The endings that editors and people append to the name of a copy."""
_MAX_NAME: Final = 255
"""The longest name that is checked; no file system has longer ones."""
_MAX_COPIES: Final = 8
"""The maximum number of endings that are removed, for copies of copies. A higher limit would cost time without
protecting more files."""
_DIRECTORIES: Final = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".kube", ".docker", ".password-store"})
"""All files in these directories match."""
_PATHS: Final = ("gh/hosts.yml", "glab-cli/config.yml", ".m2/settings.xml", ".gem/credentials", ".bundle/config")
"""Files that match only in these directories."""

_PRIVATE_KEY: Final = re.compile(rb"\s*-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----")
_SEARCHED_BYTES: Final = 64 * 1024
"""The part of a file that is searched. Such files are far smaller, and the search takes some milliseconds."""
_REPOSITORIES: Final = frozenset({".git", ".hg", ".svn"})
_CONFIGURATIONS: Final = frozenset(
    {".gitconfig", ".gitmodules", ".hgrc", "pip.conf", ".pip.conf", ".yarnrc.yml", ".condarc"}
)
_LOGIN: Final = re.compile(
    rb"://(?!(?:git|hg|svn)@)[^/\s@]+@"
    rb"|^[ \t]*extraheader[ \t]*=.*authorization|^[ \t]*\"?npmauth(token|ident)\"?[ \t]*:",
    re.IGNORECASE | re.MULTILINE,
)
"""A user's name or password in an address, or an authorization header, as CI systems store them."""


def named_like_a_secret(name: str) -> bool:
    """Whether a file with this path (parts separated by ``/``) likely contains keys, passwords or tokens, or is a copy
    of such a file.
    """
    path = PurePosixPath(name.lower())
    *directories, file = path.parts or ("",)
    if not _DIRECTORIES.isdisjoint(directories):
        return True
    originals = [path.with_name(original) for original in _originals(file)]
    if any(_HARMLESS_NAME.fullmatch(original.name) for original in originals):
        return False
    return any(map(_is_secret, originals))


def _is_secret(path: PurePosixPath) -> bool:
    return bool(_SECRET_NAME.fullmatch(path.name) or _DATA.fullmatch(path.name)) or any(map(path.match, _PATHS))


def _originals(file: str) -> Iterator[str]:
    """The name, and the names of files that it may be a copy of."""
    if file in {"", ".", ".."} or len(file) > _MAX_NAME:
        return
    yield file
    for _ in range(_MAX_COPIES):
        shorter = _COPY.sub("", file)
        if shorter in {file, "", ".", ".."}:
            break
        yield shorter
        if len(shorter) > 2 and shorter.startswith("."):
            yield shorter[1:]  # vim: ``.server.key.swp``
        file = shorter
    if file.startswith(("#", ".#")) and len(original := file.removeprefix(".").strip("#")) > 1:
        yield original  # emacs


def contains_login(name: str, data: bytes) -> bool:
    """Whether a file of version control or of a package manager, with this path and content, has a login in an address,
    as tools store it there.
    """
    *directories, file = PurePosixPath(name.lower()).parts or ("",)
    checked = not _REPOSITORIES.isdisjoint(directories) or not _CONFIGURATIONS.isdisjoint(_originals(file))
    return checked and _LOGIN.search(data, 0, _SEARCHED_BYTES) is not None


def is_private_link(links: int, mode: int) -> bool:
    """Whether a file may be a secret under another name: it has several names (hard links), and only its owner may read
    it, as tools demand of keys and tokens. Files of package caches have several names too, but others may read them.
    """
    return links > 1 and not stat.S_IMODE(mode) & 0o077


def begins_like_a_key(data: bytes) -> bool:
    """Whether the file's content starts like a private key."""
    return _PRIVATE_KEY.match(data, 0, _SEARCHED_BYTES) is not None


def allowed(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a pattern such as ``.env.test`` or ``certs/*.pem`` matches the end of the path."""
    return any(PurePosixPath(name).match(pattern) for pattern in patterns)
