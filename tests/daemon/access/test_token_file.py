"""The file of named tokens."""

import json
import os
import stat
import threading
from pathlib import Path

import pytest
from toold.daemon.access.token_book import TokenBook, TokenError
from toold.daemon.access.token_file import TOKENS_FILE, TokenFile, change_tokens, read_tokens
from toold.daemon.persistence.state_directory import StateError


def make(directory: Path, name: str) -> str:
    created: list[str] = []

    def add(book: TokenBook) -> TokenBook:
        changed, token = book.with_new(name, 1.0)
        created.append(token)
        return changed

    change_tokens(directory, add)
    return created[0]


def test_the_file_is_private(tmp_path: Path) -> None:
    """The directory is created if needed; the file is readable by its owner only and contains no token."""
    directory = tmp_path / "state"
    token = make(directory, "ci")
    path = directory / TOKENS_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert read_tokens(directory).by_token(token) is not None
    assert token.encode() not in path.read_bytes()


def test_a_directory_without_the_file(tmp_path: Path) -> None:
    """Reading creates nothing."""
    assert read_tokens(tmp_path).tokens == ()
    assert list(tmp_path.iterdir()) == []


def test_a_failed_change_writes_nothing(tmp_path: Path) -> None:
    """The file is unchanged, byte for byte."""
    make(tmp_path, "ci")
    before = (tmp_path / TOKENS_FILE).read_bytes()
    with pytest.raises(TokenError):
        make(tmp_path, "ci")
    assert (tmp_path / TOKENS_FILE).read_bytes() == before


def test_concurrent_commands_lose_nothing(tmp_path: Path) -> None:
    """A lock serializes changes, so every printed token is in the file."""
    tokens: list[str] = []
    threads = [threading.Thread(target=lambda n=n: tokens.append(make(tmp_path, f"t{n}"))) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    book = read_tokens(tmp_path)
    assert len(tokens) == 12
    assert all(book.by_token(token) for token in tokens)


GOOD = {"name": "ci", "sha256": "0" * 64, "created_at": 1.0}


@pytest.mark.parametrize(
    "edited",
    [
        {"toolset": ["lean"]},
        {"toolsets": []},
        {"toolsets": "lean"},
        {"expires": 2.0},
        {"expires_at": "2027-01-01"},
        {"max_running": 0},
        {"daily_budget": {"USD": -1}},
        {"name": "c i"},
        {"sha256": "0" * 63},
    ],
    ids=json.dumps,
)
def test_typing_errors_in_the_file_are_errors(tmp_path: Path, edited: dict[str, object]) -> None:
    """An unknown limit must not mean no limit: the file is rejected with the position."""
    (tmp_path / TOKENS_FILE).write_text(json.dumps({"tokens": [GOOD, GOOD | {"name": "other"} | edited]}))
    with pytest.raises(StateError, match=r"does not contain named tokens \(.*\$\.tokens\[1\]"):
        read_tokens(tmp_path)


def test_token_names_are_unique(tmp_path: Path) -> None:
    """Two tokens with one name could not be revoked separately."""
    (tmp_path / TOKENS_FILE).write_text(json.dumps({"tokens": [GOOD, GOOD | {"sha256": "1" * 64}]}))
    with pytest.raises(StateError, match="two tokens have the same name"):
        read_tokens(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"tokens": [{"name": 5}]}', b'{"tokens": {}}'])
def test_invalid_files(tmp_path: Path, content: bytes) -> None:
    """The error names the file and the remedy; commands do not overwrite it."""
    (tmp_path / TOKENS_FILE).write_bytes(content)
    with pytest.raises(StateError, match=r"tokens\.json does not contain named tokens .*move it away"):
        read_tokens(tmp_path)
    with pytest.raises(StateError):
        make(tmp_path, "ci")
    assert (tmp_path / TOKENS_FILE).read_bytes() == content


def test_the_daemon_sees_changes(tmp_path: Path) -> None:
    """A token is valid as soon as it is created; while the file cannot be read, no token is valid."""
    books: list[TokenBook] = []
    tokens = TokenFile(tmp_path, books.append)
    assert tokens.book.tokens == ()
    token = make(tmp_path, "ci")
    assert tokens.book.by_token(token) is not None
    assert books[-1] is tokens.book
    assert len(books) == 2
    good = (tmp_path / TOKENS_FILE).read_bytes()
    (tmp_path / TOKENS_FILE).write_bytes(b"{")
    assert tokens.book.by_token(token) is None
    (tmp_path / TOKENS_FILE).write_bytes(good)
    assert tokens.book.by_token(token) is not None
    (tmp_path / TOKENS_FILE).unlink()
    assert tokens.book.tokens == ()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads what permissions forbid")
def test_unreadable_files(tmp_path: Path) -> None:
    """The error has the path and the reason."""
    make(tmp_path, "ci")
    (tmp_path / TOKENS_FILE).chmod(0)
    with pytest.raises(StateError, match="cannot be read"):
        read_tokens(tmp_path)


def test_the_mode_of_a_link_target_is_not_changed(tmp_path: Path) -> None:
    """It may be a system file; a private target is read."""
    elsewhere = tmp_path / "elsewhere.json"
    directory = tmp_path / "state"
    token = make(directory, "ci")
    (directory / TOKENS_FILE).replace(elsewhere)
    (directory / TOKENS_FILE).symlink_to(elsewhere)
    assert read_tokens(directory).by_token(token) is not None
    elsewhere.chmod(0o644)
    with pytest.raises(StateError, match="links to a file that other users can read"):
        read_tokens(directory)
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o644


def test_pipes_are_rejected(tmp_path: Path) -> None:
    """Reading must not wait for a writer."""
    os.mkfifo(tmp_path / TOKENS_FILE, 0o600)
    with pytest.raises(StateError, match="is not a regular file"):
        read_tokens(tmp_path)
