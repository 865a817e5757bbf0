"""Amounts of money in settings, including those from variables."""

from typing import Annotated

from pydantic_settings import NoDecode

from ...tools import Amounts as MoneyAmounts

Amounts = Annotated[MoneyAmounts, NoDecode]
"""Amounts by currency."""
