"""What the answers of Phoenix, LiteLLM and registries, and texts with front matter, contain."""

from typing import Any

import pytest
from toold.prompts.front_matter import PromptFormatError
from toold.prompts.server_answers import litellm_prompt, phoenix_prompt, registry_prompt, stored_text


def phoenix(*messages: tuple[str, Any], **fields: Any) -> dict[str, Any]:
    template = {"type": "chat", "messages": [{"role": role, "content": content} for role, content in messages]}
    return {"data": {"id": "v", "model_name": "m", "template_format": "MUSTACHE", "template": template, **fields}}


def test_phoenix_messages() -> None:
    """The system messages are the prompt, as a string or as parts; without any, the first message is."""
    parts = [{"type": "text", "text": "Be "}, {"type": "text", "text": "kind."}]
    picture = [{"type": "image", "image": {}}]
    several = phoenix_prompt(phoenix(("system", "Be brief."), ("user", picture), ("SYSTEM", parts)))
    assert (several.text, several.version, several.model) == ("Be brief.\n\nBe kind.", "v", "m")
    assert phoenix_prompt(phoenix(("user", parts), ("assistant", "Yes"))).text == "Be kind."
    string = phoenix(template={"type": "string", "template": "{a}"}, template_format="F_STRING")
    assert (phoenix_prompt(string).text, phoenix_prompt(string).template_format) == ("{a}", "f-string")
    assert phoenix_prompt(phoenix(("system", "x"), template_format="NONE")).template_format == "none"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({}, "data is not a JSON object"),
        ({"data": {"template": {"messages": "x"}}}, "messages is not a list"),
        (phoenix(), "it is empty"),
        (phoenix(("system", " ")), "it is empty"),
        (phoenix(("system", [{"type": "image"}])), "a part that is not text"),
        (phoenix(("system", None)), "neither text nor a list"),
        (phoenix(("system", "x"), template_format="JINJA"), "its template format is 'JINJA', not mustache, f-string"),
        (phoenix(("system", "x" * 1_000_001)), "more than 1,000,000 characters"),
    ],
)
def test_unusable_phoenix_answers(answer: object, reason: str) -> None:
    """The reason names what is wrong."""
    with pytest.raises(PromptFormatError, match=reason):
        phoenix_prompt(answer)


def test_litellm() -> None:
    """Front matter is removed, its model is used, and only the system messages are the prompt."""
    content = "---\nmodel: gpt-4o\ntemperature: 0.7\n---\nSystem: Be brief.\nAnd {{mood}}.\nUser: {{question}}"
    stored = litellm_prompt({"prompt_spec": {"litellm_params": {"dotprompt_content": content}}})
    assert (stored.text, stored.model, stored.template_format) == ("Be brief.\nAnd {{mood}}.", "gpt-4o", "mustache")
    raw = {"content": "Hello {{name}}", "metadata": {"model": "glm-4.6"}}
    stored = litellm_prompt({"prompt_spec": {"litellm_params": {}}, "raw_prompt_template": raw})
    assert (stored.text, stored.model) == ("Hello {{name}}", "glm-4.6")
    with pytest.raises(PromptFormatError, match=r"neither litellm_params.dotprompt_content nor raw_prompt_template"):
        litellm_prompt({"prompt_spec": {"litellm_params": {"prompt_integration": "langfuse"}}})
    with pytest.raises(PromptFormatError, match="Jinja tags"):
        litellm_prompt({"prompt_spec": {"litellm_params": {"dotprompt_content": "{% if a %}b{% endif %}"}}})


def test_registry() -> None:
    """The text, and if the registry says so the format, the model and the version."""
    stored = registry_prompt({"template": "{a}", "template_format": "F_STRING", "model": "m", "version": 4})
    assert (stored.text, stored.template_format, stored.model, stored.version) == ("{a}", "f-string", "m", "4")
    assert registry_prompt({"prompt": "---\nmodel: m\n---\nx"}).model == "m"
    with pytest.raises(PromptFormatError, match="in neither template, prompt nor text"):
        registry_prompt({"template": None})


def test_front_matter() -> None:
    """Model, format and defaults are read; a Markdown rule is text; invalid front matter is an error."""
    stored = stored_text("---\r\nmodel: m\r\ntemplate_format: f-string\r\ninput: {default: {a: 1}}\r\n---\r\n{a}")
    assert (stored.text, stored.model, stored.template_format, stored.defaults) == ("{a}", "m", "f-string", {"a": 1})
    plain = stored_text("---\nA rule above\n---\nSystem: stays")
    assert (plain.text, plain.template_format) == ("---\nA rule above\n---\nSystem: stays", None)
    roles = stored_text('---\nmodel: m\n---\n{{role "system"}}\nBe kind.\n{{role "user"}}\n{{question}}')
    assert roles.text == "Be kind."
    same, other = stored_text("a"), stored_text("b")
    assert (len(same.version), same.version == stored_text("a").version, same.version == other.version) == (
        12,
        True,
        False,
    )
    for text, reason in [
        ("---\nmodel: [\n---\nx", "its front matter is not YAML"),
        ("---\nmodel: 3\n---\nx", "the model of its front matter is not text"),
        ("---\nmodel: m\n---\n \n", "it is empty"),
    ]:
        with pytest.raises(PromptFormatError, match=reason):
            stored_text(text)
