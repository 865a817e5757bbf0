"""Amounts of money in settings."""

import re
from typing import Annotated, get_args

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError
from pydantic_settings import NoDecode

from ...providers import Currency


def _amounts(value: object) -> object:
    """Parse ``5 USD``, or several amounts as a list or separated by commas, to amounts by currency."""
    if not isinstance(value, str | list | tuple):
        raise _invalid_amounts()
    pieces = value.split(",") if isinstance(value, str) else value
    amounts: dict[str, float] = {}
    for piece in pieces:
        match = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,9})?)\s*([A-Za-z]+)\s*", piece) if isinstance(piece, str) else None
        if match is None or match[2].upper() not in get_args(Currency) or match[2].upper() in amounts:
            raise _invalid_amounts()
        amounts[match[2].upper()] = float(match[1])
    return amounts


def _invalid_amounts() -> PydanticCustomError:
    currencies = " or ".join(get_args(Currency))
    return PydanticCustomError(
        "amounts",
        "must be amounts such as 5 USD, 30 CNY: a number and a currency ({currencies}), each currency once",
        {"currencies": currencies},
    )


Amounts = Annotated[dict[str, float], NoDecode, BeforeValidator(_amounts)]
"""Amounts by currency."""
