"""Amounts of money in settings."""

import re
from typing import Annotated, get_args

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from ..providers import Currency


def _amounts(value: object) -> object:
    """Parse ``5 USD``, or several amounts as a list, separated by commas or as a table, to amounts by currency."""
    if isinstance(value, dict) and value.keys() <= set(get_args(Currency)):
        return value
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


Amounts = Annotated[dict[str, Annotated[float, Field(ge=0)]], BeforeValidator(_amounts)]
"""Amounts by currency."""
