"""Secrets are read from where they are, and told by nothing."""

from pathlib import Path

import pytest
from toold.sources.source_secret import SourceSecret, SourceSecretError


def test_a_variable_or_a_file_holds_it(tmp_path: Path) -> None:
    """Its value is read anew each time, without the line end that files have."""
    file = tmp_path / "crm.token"
    file.write_text("first\n", encoding="utf-8")
    secret = SourceSecret(None, file)
    assert secret.read({}) == "first"
    file.write_text("second\n", encoding="utf-8")
    assert secret.read({}) == "second"
    assert SourceSecret("CRM_TOKEN", None).read({"CRM_TOKEN": "of the environment"}) == "of the environment"


@pytest.mark.parametrize("value", ["", "two\nlines", "no\u00efn ASCII", "\x07"])
def test_what_is_no_secret_is_refused_without_being_told(value: str) -> None:
    """The error names the variable, and never what is in it."""
    with pytest.raises(SourceSecretError, match="CRM_TOKEN") as caught:
        SourceSecret("CRM_TOKEN", None).read({"CRM_TOKEN": value})
    assert not value or value not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """By its name alone: no path of the server goes out."""
    with pytest.raises(SourceSecretError, match=r"crm\.token cannot be read") as caught:
        SourceSecret(None, tmp_path / "crm.token").read({})
    assert str(tmp_path) not in str(caught.value)
