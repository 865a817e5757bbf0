"""Detection of files that are likely to contain secrets."""

import pytest
from toold.tools.secret_files import allowed, begins_like_a_key, contains_login, is_private_link, named_like_a_secret


@pytest.mark.parametrize(
    "name",
    [
        ".env", "app/.env", ".env.production", "prod.env", ".ENV", ".envrc", "tls/server.key", "cert.PEM", "id_rsa",
        "keys/id_ed25519", "id_ecdsa_sk", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".aws/config",
        "home/.ssh/known_hosts", ".kube/config", "config/credentials", "secrets.yaml", "service-account-prod.json",
        "vault.kdbx", "terraform.tfstate", "prod.tfvars", "gcloud/application_default_credentials.json",
        "client_secret_12.apps.json", "other/toold.toml",
        ".env~", ".env.local~", "prod.env.bak", "prod.env.old.bak", "#.env#", ".#.env", ".env.swp", "..env.swp",
        ".env.~2~",
        ".server.key.swp", "server.key.orig", "server.pem.20260101", "id_rsa.old", "id_rsa_work", "deploy_ed25519",
        "aws_credentials.txt", "my-credentials.csv", "credentials.tfrc.json", "credential.ini", "app.secrets.yml",
        "secret.yaml", "Secrets.JSON~", "alice_accessKeys.csv", ".pgpass.bak", ".netrc~", ".npmrc.save", ".pypirc.old",
        "kubeconfig", "kubeconfig-prod", "prod.kubeconfig", "my-kubeconfig.yaml", "terraform.tfstate.backup",
        "prod.tfvars.json", ".terraform/terraform.tfstate", ".my.cnf", ".vault-token", ".bash_history",
        ".config/gh/hosts.yml", "x.p12.bak", "wp-config.php.bak", "toold.toml.bak1", "toold.toml.bak12", ".env.bak2",
        "toold.toml.toold-new",
    ],
)  # fmt: skip
def test_secret_files_are_detected_by_name(name: str) -> None:
    """The directory and the letter case do not matter."""
    assert named_like_a_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "", "README.md", "src/secrets.py", ".env.example", "prod.env.sample", "id_rsa.pub", "keyboard.py", "key.md",
        "id_rsa.pub.bak", ".env.example~", "secrets.py.bak", "src/kubeconfig.go", "auth.py", "a~", "~", "#", "##", ".#",
        ".bak", ".", "..",
        "gh/readme.yml", "docs/credentials.md", "rsa.py", "history.md", "notes.txt.bak", ".git/config", "config.1",
        "environment.yml", "src/credentials.py", "docs/ssh.md", "env/main.py", "tokens.json",
    ],
)  # fmt: skip
def test_other_files_are_not_detected_as_secret(name: str) -> None:
    """Code about secrets, public keys and example files are not detected."""
    assert not named_like_a_secret(name)


@pytest.mark.parametrize(
    ("data", "is_key"),
    [
        (b"-----BEGIN PRIVATE KEY-----\nMIIE", True),
        (b"\n -----BEGIN RSA PRIVATE KEY-----", True),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----", True),
        (b"-----BEGIN PGP PRIVATE KEY BLOCK-----", True),
        (b"-----BEGIN CERTIFICATE-----", False),
        (b"x = '-----BEGIN PRIVATE KEY-----'", False),
        (b"", False),
    ],
)
def test_a_private_key_is_detected_by_its_first_bytes(data: bytes, is_key: bool) -> None:
    """The file name does not matter; text that merely mentions a private key is not detected."""
    assert begins_like_a_key(data) is is_key


@pytest.mark.parametrize(
    ("name", "data", "has_login"),
    [
        (".git/config", b"[remote]\n\turl = https://me:s3cret@host/r.git", True),
        ("lib/.git/modules/a/config", b"url = https://ghp_token@host/r.git", True),
        (".git/config", b'[http "https://host/"]\n\textraheader = AUTHORIZATION: basic eDp5', True),
        (".git/config~", b"url=HTTPS://me:s3cret@host", True),
        (".gitconfig.bak", b"url = https://me:s3cret@host", True),
        ("pip.conf", b"index-url = https://me:s3cret@host/packages", True),
        (".yarnrc.yml", b'npmAuthToken: "abc"', True),
        (".git/config", b"url = ssh://git@host/r.git\nurl = https://host/r@1", False),
        (".git/config", b"url = git@host:r.git", False),
        ("docs/urls.md", b"https://me:s3cret@host", False),
        (".git/config", b"\n" * 65_000 + b"url = https://me:s3cret@host", True),
        (".git/config", b"\n" * 66_000 + b"url = https://me:s3cret@host", False),
    ],
)
def test_a_login_in_an_address_is_detected(name: str, data: bytes, has_login: bool) -> None:
    """Only in files in which tools store logins; the usual user names of version control are ignored."""
    assert contains_login(name, data) is has_login


@pytest.mark.parametrize(
    ("links", "mode", "is_private"),
    [(2, 0o100600, True), (2, 0o100644, False), (2, 0o100640, False), (1, 0o100600, False)],
)
def test_a_private_file_with_several_names_is_detected(links: int, mode: int, is_private: bool) -> None:
    """Hard links of files that others may read, as package caches make them, are not."""
    assert is_private_link(links, mode) is is_private


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [
        (".env.test", ".env.test", True),
        ("app/.env.test", ".env.test", True),
        ("app/certs/a.pem", "certs/*.pem", True),
        ("certs/sub/a.pem", "certs/*.pem", False),
        (".env", ".env.test", False),
    ],
)
def test_allowed_secret_files_are_matched_by_pattern(name: str, pattern: str, fits: bool) -> None:
    """The pattern matches the end of the path."""
    assert allowed(name, (pattern,)) is fits
