"""Converts the progress and the chunks of tools to values that JSON can express. Pure."""

import math

import msgspec

from ...protocol.tool_call import AnswerPiece, ReasoningPiece, ToolCallPiece


def sendable(text: str) -> str:
    """The text with lone surrogates, which cannot be encoded, replaced by question marks.

    Raises:
        TypeError: it is not a string.
    """
    if not isinstance(text, str):
        raise TypeError(f"a progress message or chunk must be a string, not {type(text).__name__}")
    return text if text.isascii() else text.encode(errors="replace").decode()


def sendable_piece(piece: AnswerPiece) -> AnswerPiece:
    """The piece, converted so that JSON can express it. If its extra content cannot be encoded, the whole answer cannot
    either."""
    if isinstance(piece, ReasoningPiece):
        return ReasoningPiece(sendable(piece.text))
    extra = piece.extra_content
    if extra is not None:
        try:
            msgspec.json.encode(extra)
        except (TypeError, ValueError, RecursionError):
            extra = None
    return ToolCallPiece(piece.index, sendable(piece.id), sendable(piece.name), sendable(piece.arguments), extra)


def finite_number(number: float | None) -> float | None:
    """The number, or None if JSON cannot express it."""
    return float(number) if isinstance(number, int | float) and math.isfinite(number) else None
