"""Others' words, fit for a log, a table and a terminal. Pure."""


def one_line(text: str, most_chars: int) -> str:
    """The text on one line, without what a terminal would obey, cut off where it is long."""
    begun = text[: 4 * most_chars]
    line = " ".join("".join(char if char.isprintable() else " " for char in begun).split())
    return line if len(line) <= most_chars and len(begun) == len(text) else line[: most_chars - 1] + "…"
