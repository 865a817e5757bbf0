"""Secrets are read from a variable or a file, and appear in no error."""

from pathlib import Path

import pytest
from toold.tools.secret_location import MAX_SECRET_BYTES, SecretLocation, SecretUnavailableError


def test_a_variable_or_a_file_holds_the_secret(tmp_path: Path) -> None:
    """Each read returns the current value, without the line end of a file."""
    file = tmp_path / "crm.token"
    file.write_text("first\n", encoding="utf-8")
    secret = SecretLocation(None, file)
    assert (secret.read({}), secret.read_header_value({})) == ("first", "first")
    file.write_text("second\n", encoding="utf-8")
    assert secret.read({}) == "second"
    assert SecretLocation("CRM_TOKEN", None).read({"CRM_TOKEN": "from the environment"}) == "from the environment"


@pytest.mark.parametrize("value", ["", "two\nlines", "no\u00efn ASCII", "\x07"])
def test_a_value_that_is_invalid_in_a_header_is_rejected_without_being_shown(value: str) -> None:
    """The error names the variable and never contains its value."""
    with pytest.raises(SecretUnavailableError, match="CRM_TOKEN") as caught:
        SecretLocation("CRM_TOKEN", None).read_header_value({"CRM_TOKEN": value})
    assert not value or value not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The error contains the file name but not its directory."""
    with pytest.raises(SecretUnavailableError, match=r"crm\.token cannot be read") as caught:
        SecretLocation(None, tmp_path / "crm.token").read({})
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe", b"x" * (MAX_SECRET_BYTES + 1)])
def test_an_unusable_file_is_rejected(tmp_path: Path, content: bytes) -> None:
    """A file that is empty, not UTF-8 or too large is rejected."""
    file = tmp_path / "crm.token"
    file.write_bytes(content)
    with pytest.raises(SecretUnavailableError, match=r"crm\.token"):
        SecretLocation(None, file).read({})
