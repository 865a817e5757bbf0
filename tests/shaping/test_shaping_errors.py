"""What an error of the language tells."""

from toold.shaping.shaping_errors import LanguageError


def test_an_error_shows_where_it_is_and_how_it_is_written() -> None:
    """The message has the position, counted from 1, the text from there on, cut short, and an example."""
    error = LanguageError("no such word", "status liek " + "x" * 100, 8, "status = 'open'")
    assert str(error) == ("no such word (position 8, before 'liek xxxxxxxxxxxxxxxxxxx…'); for example: status = 'open'")
    assert (error.what, error.position, error.example) == ("no such word", 8, "status = 'open'")


def test_an_error_behind_the_last_character_says_so() -> None:
    """Where the text ends too early there is nothing to show."""
    assert "(position 4, at the end)" in str(LanguageError("a value is missing", "a =", 4, "a = 1"))
