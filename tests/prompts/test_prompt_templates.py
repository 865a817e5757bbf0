"""f-string and MUSTACHE templates: what they insert, what they refuse, and their limits."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.prompts.mustache import MAX_STEPS
from toold.prompts.prompt_templates import fill_template
from toold.prompts.prompt_variables import MAX_PROMPT_CHARS
from toold.tools import PromptError, TemplateFormat

VARIABLES: dict[str, Any] = {
    "name": "Ana <b>",
    "count": 3,
    "strict": True,
    "items": [{"title": "one"}, {"title": "two"}],
    "tags": ["x", "ä"],
    "none": [],
    "user": {"mail": {"home": "a@example"}},
}


@pytest.mark.parametrize(
    ("template_format", "template", "filled"),
    [
        ("f-string", "{name}: {count}, {strict}, {tags}, {{kept}}", 'Ana <b>: 3, true, ["x", "ä"], {kept}'),
        ("mustache", "{{name}} {{ name }} {{{name}}} {{& name}} {x}", "Ana <b> Ana <b> Ana <b> Ana <b> {x}"),
        ("mustache", "{{user.mail.home}}{{! a comment }}", "a@example"),
        ("mustache", "{{#items}}{{title}} of {{count}};{{/items}}", "one of 3;two of 3;"),
        ("mustache", "{{#tags}}<{{.}}>{{/tags}}{{^none}}none{{/none}}{{#none}}never{{/none}}", "<x><ä>none"),
        ("mustache", "a\n{{#strict}}\n  b\n{{/strict}}\nc", "a\n  b\nc"),
        ("mustache", '{"json": {"a": 1}} {{ {} }}', '{"json": {"a": 1}} {{ {} }}'),
        ("none", "{name} {{name}}", "{name} {{name}}"),
        (None, "{{name}} {not}", "Ana <b> {not}"),
        (None, "{name} {{not}}", "Ana <b> {not}"),
    ],
)
def test_filled(template_format: TemplateFormat | None, template: str, filled: str) -> None:
    """Strings are inserted as they are, other values as JSON; sections repeat; an undeclared format is found."""
    assert fill_template(template, template_format, VARIABLES) == filled


def test_without_variables_an_undeclared_text_is_not_a_template() -> None:
    """JSON in a plain prompt needs no escapes; only white space at the ends is removed."""
    assert fill_template('\nAnswer {"a": {{1}}} \n', None, {}) == 'Answer {"a": {{1}}}'


@pytest.mark.parametrize(
    ("template_format", "template", "problem"),
    [
        (
            "f-string",
            "{naem}",
            "the variable 'naem', which has no value; known variables: count",
        ),
        ("f-string", "{name.__class__}", "the field {name.__class__}; fields are names only"),
        ("f-string", "{items[0]}", "the field {items[0]}; fields are names only"),
        ("f-string", "{name!r:>{count}}", "the field {name!r:>{count}}; fields are names only"),
        ("f-string", "{}", "the field {}; fields are names only"),
        ("f-string", '{"a": 1}', "fields are names only, such as {name}, and braces in the text are written {{ and }}"),
        ("f-string", "a } b", "a brace without its counterpart"),
        ("mustache", "{{naem}}", "did you mean 'name'?"),
        ("mustache", "{{user.mail.work}}", "the variable 'user.mail.work'"),
        ("mustache", "{{name.upper}}", "the variable 'name.upper'"),
        ("mustache", "{{#naem}}x{{/naem}}", "the variable 'naem'"),
        ("mustache", "{{#if name}}x{{/if}}", "the tag '{{#if name}}', which is not the name of a variable"),
        ("mustache", "{{> header}}", "the template's tag '{{> header}}' is not supported"),
        ("mustache", "{{#name}}x", "the template's section 'name' has no end"),
        ("mustache", "x{{/name}}", "'{{/name}}' without the section that it ends"),
        ("mustache", "{{#name}}{{#count}}{{/name}}{{/count}}", "'{{/name}}' without the section"),
        ("mustache", "{{#name}}" * 33 + "{{/name}}" * 33, "more than 32 levels deep"),
    ],
)
def test_refused(template_format: TemplateFormat, template: str, problem: str) -> None:
    """The error quotes the variable or the tag, and names the known variables or what to write."""
    with pytest.raises(PromptError) as raised:
        fill_template(template, template_format, VARIABLES)
    assert problem in str(raised.value)


def test_no_metadata() -> None:
    """The error of a declared template says that the role has none."""
    with pytest.raises(PromptError, match=r"'topic', which has no value; no variable has one$"):
        fill_template("{{topic}}", "mustache", {})


def test_limits() -> None:
    """A filled prompt is bounded in characters, and repeated sections in parts, before the memory is used."""
    many = {"many": ["x" * 1000] * 1000, "count": 1}
    with pytest.raises(PromptError, match=f"more than {MAX_PROMPT_CHARS:,} characters"):
        fill_template("{{#many}}{{#many}}{{.}}{{/many}}{{/many}}", "mustache", many)
    with pytest.raises(PromptError, match=f"more than {MAX_PROMPT_CHARS:,} characters"):
        fill_template("{many}" * 100_000, "f-string", many)
    with pytest.raises(PromptError, match=f"more than {MAX_STEPS:,} parts"):
        fill_template("{{#many}}{{#many}}{{^many}}{{/many}}{{/many}}{{/many}}", "mustache", many)


@given(st.text("{}#^/!&>=. \nab", max_size=60), st.sampled_from(["mustache", "f-string"]))
def test_any_template(template: str, template_format: TemplateFormat) -> None:
    """Any text is filled in or refused, and nothing else happens."""
    with suppress(PromptError):
        assert isinstance(fill_template(template, template_format, {"a": ["b"], "b": {"a": 1}}), str)


def test_hostile_templates_take_linear_time() -> None:
    """A million braces, spaces or tags in a line are parsed once, not once per tag."""
    for text in ("{" * 1_000_000, "{{a}}" + " " * 999_000, "{{!}} " * 40_000, "{{#a}}{{/a}}" * 8000):
        fill_template(text, "mustache", {"a": []})
