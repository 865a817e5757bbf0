"""The shipped models of the presets."""

import pytest
from toold.protocol.tool_call import Cost, Usage
from toold.providers import DIALECTS, PRESETS, ModelCatalogError, preset_models
from toold.providers.preset_catalog import parse_presets

SHIPPED = [(preset, model) for preset in PRESETS for model in preset_models(preset).values()]


def test_each_model_has_its_figures_and_their_source() -> None:
    """Window, price, source and date; and no depth that the preset cannot request."""
    assert len(SHIPPED) > 20
    for preset, model in SHIPPED:
        assert model.context_window, model.id
        assert model.price is not None, model.id
        assert model.source, model.id
        assert set(model.efforts) <= set(DIALECTS[preset].efforts), model.id
        assert (model.max_output or 0) <= model.context_window, model.id


def test_a_long_prompt_has_its_own_price() -> None:
    """The whole request then costs more, by what the vendor lists."""
    model = preset_models("openai")["gpt-5.5"]
    assert model.cost(Usage(272_000, 0)) == Cost(1.36, "USD")
    assert model.cost(Usage(300_000, 1_000, cached_tokens=100_000)) == Cost(2.145, "USD")


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("[openai", "is not TOML"),
        ('[openai.models."m"]\ncontext_window = 1\ncontext = 2', "unknown key 'context'"),
        (
            (
                '[openai.models."m"]\nsource = "s"\ndate = 2026-01-01\ncontext_window = 1\n'
                'price = { currency = "USD", input = 1, output = 1, long_prompt = { token = 3 } }'
            ),
            "long_prompt: unknown key 'token'; did you mean 'tokens'",
        ),
    ],
)
def test_an_invalid_file_is_refused(toml: str, says: str) -> None:
    """The message names the model and the key."""
    with pytest.raises(ModelCatalogError) as error:
        parse_presets(toml)
    assert says in str(error.value)
