"""Makes untrusted text safe for logs, tables and terminals. Pure."""


def terminal_safe(text: str, *, keep: str = "") -> str:
    """Returns the text with a space for each character that is not printable, such as escape sequences.

    Characters in ``keep`` stay.
    """
    return "".join(char if char.isprintable() or char in keep else " " for char in text)


def one_line(text: str, max_chars: int) -> str:
    """Returns the text on one line, terminal-safe, with an ellipsis if it is longer than ``max_chars``."""
    if len(text) <= max_chars and text.isprintable() and " " not in text:
        return text  # the usual case
    head = text[: 4 * max_chars]
    line = " ".join(terminal_safe(head).split())
    return line if len(line) <= max_chars and len(head) == len(text) else line[: max_chars - 1] + "…"
