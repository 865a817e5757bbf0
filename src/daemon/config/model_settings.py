"""The operator's facts about models of configured providers, ``[models."PROVIDER/ID"]``; see docs/providers.md."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self

import msgspec
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from ...protocol.name_suggestions import close_names, did_you_mean
from ...providers import Currency, Effort, Modality, ModelFacts, ModelKind, ModelPrice, Structured, Thinking
from ...tools import setting_message

_Tokens = Annotated[int, Field(ge=1, strict=True)]
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Table(BaseModel):
    """A table of toold.toml: unknown settings are refused, and errors do not contain values."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class LongPromptSettings(_Table):
    """A price per million tokens of requests whose prompt has more than ``tokens``."""

    tokens: _Tokens
    input: _Amount
    output: _Amount
    cached_input: _Amount | None = None


class PriceSettings(_Table):
    """A price per million tokens."""

    currency: Currency
    input: _Amount
    output: _Amount
    cached_input: _Amount | None = None
    long_prompt: LongPromptSettings | None = None


class ModelSettings(_Table):
    """Fields of ``Model``; None for fields that the operator does not state."""

    kind: ModelKind | None = None
    context_window: _Tokens | None = None
    max_output: _Tokens | None = None
    inputs: tuple[Modality, ...] | None = None
    thinking: Thinking | None = None
    efforts: tuple[Effort, ...] | None = None
    tools: Annotated[bool, Field(strict=True)] | None = None
    structured: Structured | None = None
    price: PriceSettings | None = None
    timeout_s: Annotated[float, Field(gt=0, le=1800, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.efforts and self.thinking in {None, "none"}:
            raise PydanticCustomError("model", "efforts need thinking to be switch or always")
        if self.context_window is not None and self.max_output is not None and self.max_output > self.context_window:
            raise PydanticCustomError("model", "max_output must be at most context_window")
        return self

    def facts(self) -> ModelFacts:
        price = None if self.price is None else msgspec.convert(self.price.model_dump(), ModelPrice)
        values: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        return ModelFacts(**{**values, "price": price})


def read_models(tables: object) -> dict[str, ModelSettings]:
    """Returns the models by full name.

    Raises:
        PydanticCustomError: a table is invalid; the message names the model and the key.
    """
    if not isinstance(tables, Mapping):
        raise _invalid(
            'must be set in toold.toml, as tables [models."PROVIDER/ID"] with context_window, price and others'
        )
    return {str(name): _model(str(name), table) for name, table in tables.items()}


def _model(name: str, table: object) -> ModelSettings:
    where = f'[models."{name[:200]}"]'
    provider, _, vendor_id = name.partition("/")
    if not provider or not vendor_id:
        raise _invalid(f'{where} must have the full name of a model, such as [models."work/large"]')
    if isinstance(table, ModelSettings):
        return table
    if not isinstance(table, Mapping):
        raise _invalid(f"{where} must be a table")
    try:
        return ModelSettings.model_validate(dict(table))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
    raise _invalid("; ".join(dict.fromkeys(f"{where} {_sentence(problem)}" for problem in problems)))


def unknown_providers(models: Iterable[str], providers: Iterable[str]) -> str | None:
    """Returns the problem if a model's provider is not configured; otherwise None."""
    known = list(providers)
    for name in models:
        provider = name.partition("/")[0]
        if provider not in known:
            hint = did_you_mean(close_names(provider, known, n=1)) or "add its table [providers.NAME]"
            return f'[models."{name[:200]}"] names the provider {provider!r}, which is not configured; {hint}'
    return None


def _sentence(problem: Any) -> str:
    keys = [step for step in problem["loc"] if isinstance(step, str)]
    known: Mapping[str, Any] = PriceSettings.model_fields if keys[:1] == ["price"] else ModelSettings.model_fields
    if problem["type"] == "extra_forbidden":
        hint = did_you_mean(close_names(keys[-1], known, n=1)) or f"settings: {', '.join(known)}"
        return f"{'.'.join(keys)} is not a setting; {hint}"
    return f"{'.'.join(keys)} {setting_message(problem)}".strip()


def _invalid(message: str) -> PydanticCustomError:
    return PydanticCustomError("models", "{message}", {"message": message})
