"""Reading the list of models that a vendor returns."""

from typing import Any

import pytest
from toold.providers import ModelPrice
from toold.providers.model_listing import read_models
from toold.providers.response_values import InvalidResponseError


def test_ids_are_read_in_order() -> None:
    """Ids are read in order, and entries without an id are skipped."""
    assert [model.id for model in read_models({"data": [{"id": "b"}, {"id": "a"}, {}, None]})] == ["b", "a"]


@pytest.mark.parametrize("document", [None, [], {}, {"data": {}}])
def test_document_without_a_list_is_refused(document: Any) -> None:
    """A document without a list raises an error instead of returning no models."""
    with pytest.raises(InvalidResponseError):
        read_models(document)


OPENROUTER = {
    "id": "org/large",
    "context_length": 163840,
    "architecture": {"input_modalities": ["image", "text", "audio"]},
    "pricing": {"prompt": "0.0000002", "completion": "0.0000008", "input_cache_read": "0.00000002"},
    "top_provider": {"max_completion_tokens": 65536},
    "supported_parameters": ["tools", "temperature"],
}


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (
            OPENROUTER,
            {
                "context_window": 163840,
                "max_output": 65536,
                "inputs": ("text", "image"),
                "tools": True,
                "price": ModelPrice("USD", 0.2, 0.8, 0.02),
            },
        ),
        ({**OPENROUTER, "pricing": {"prompt": "-1", "completion": "-1"}}, {"price": None}),
        (
            {"id": "m", "context_window": 131072, "max_completion_tokens": 8192},
            {"context_window": 131072, "max_output": 8192},
        ),
        ({"id": "m", "max_model_len": 4096}, {"context_window": 4096, "max_output": None, "tools": None}),
        (
            {"id": "m", "max_context_length": 32768, "capabilities": {"vision": False, "function_calling": True}},
            {"context_window": 32768, "inputs": ("text",), "tools": True},
        ),
        (
            {"id": "m", "context_length": True, "max_model_len": "x", "pricing": 3, "top_provider": []},
            {"context_window": None},
        ),
    ],
    ids=["openrouter", "openrouter: varying price", "groq", "vllm", "mistral", "other types"],
)
def test_what_a_list_states_of_a_model_is_read(entry: dict[str, Any], says: dict[str, Any]) -> None:
    """In the fields of the vendors that have any; everything else stays unknown."""
    (model,) = read_models({"data": [entry]})
    assert {name: getattr(model.facts, name) for name in says} == says


def test_geminis_names_are_those_that_it_takes() -> None:
    """Its list puts ``models/`` before them."""
    (model,) = read_models({"data": [{"id": "models/gemini-2.5-flash"}]})
    assert model.id == "gemini-2.5-flash"
