"""Messages of language errors."""

from toold.shaping.shaping_errors import LanguageError


def test_an_error_shows_its_position_and_an_example() -> None:
    """The message contains the position, counted from 1, the truncated text from there, and an example."""
    error = LanguageError("no such word", "status liek " + "x" * 100, 8, "status = 'open'")
    assert str(error) == ("no such word (position 8, before 'liek xxxxxxxxxxxxxxxxxxx…'); for example: status = 'open'")
    assert (error.what, error.position, error.example) == ("no such word", 8, "status = 'open'")


def test_an_error_at_the_end_has_no_excerpt() -> None:
    """The message says that the error is at the end of the text."""
    assert "(position 4, at the end)" in str(LanguageError("a value is missing", "a =", 4, "a = 1"))
