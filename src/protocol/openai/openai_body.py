"""The bodies of requests in OpenAI's format. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..json_pieces import MAX_VALUES, TooComplexError, TooManyValuesError, decode_in_pieces, finite
from .openai_error import OpenAIProblem, invalid

_decode: Final = msgspec.json.Decoder(float_hook=finite).decode


def decode_body(body: bytes) -> Any:
    """Decodes a body of moderate length, or returns an ``OpenAIProblem``. Never raises."""
    return _decoded(body, _decode)


def decode_long_body(body: bytes) -> Any:
    """``decode_body`` for any length, in a thread, with at most ``MAX_VALUES`` values."""
    return _decoded(body, decode_in_pieces)


def _decoded(body: bytes, decode: Any) -> Any:
    try:
        return decode(body)
    except TooManyValuesError:
        return invalid(None, f"The body has more than {MAX_VALUES} values.", code="request_too_large")
    except TooComplexError as error:
        return invalid(None, f"The body is too complex: {error}.", code="request_too_large")
    except RecursionError:
        return invalid(None, "The body is nested too deeply.", code="invalid_json")
    except UnicodeDecodeError:
        return invalid(None, "The body is not UTF-8.", code="invalid_json")
    except msgspec.DecodeError as error:
        return invalid(None, f"The body is not JSON: {error}", code="invalid_json")


def model_name(fields: Mapping[str, Any]) -> str | OpenAIProblem:
    """Returns the field ``model``."""
    model = fields.get("model")
    if not isinstance(model, str) or not model.strip():
        return invalid("model", "model must be the name of a model; GET /v1/models lists them.")
    return model
