"""Reads the prompts in the answers of Phoenix, LiteLLM and registries. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from ..tools import TemplateFormat
from .front_matter import (
    PromptFormatError,
    instructions_of,
    joined_instructions,
    split_front_matter,
    template_format_named,
)
from .prompt_variables import MAX_PROMPT_CHARS

_JINJA_BLOCK: Final = re.compile(r"\{%[^{}]*%\}")
_REGISTRY_TEXTS: Final = ("template", "prompt", "text")
"""The fields of a registry's answer that may have the text. The first one is documented."""


@dataclass(frozen=True, slots=True)
class StoredPrompt:
    """The template of a prompt, from a source."""

    text: str
    version: str
    """The server's id of the version, or the first 12 digits of the text's SHA-256."""
    template_format: TemplateFormat | None = None
    """The template's format; None if the source does not declare it."""
    model: str | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Default values, for variables that a role's metadata lacks."""


def stored_text(text: str, *, is_dotprompt: bool = False, model: str | None = None, version: str = "") -> StoredPrompt:
    """Return the prompt of a text with or without front matter.

    ``is_dotprompt``: whether the text is a dotprompt, which may have several messages, even without front matter.

    Raises:
        PromptFormatError: the text is empty or too long, or its front matter is invalid.
    """
    front = split_front_matter(text)
    is_dotprompt = is_dotprompt or front.is_present
    body = instructions_of(front.text) if is_dotprompt else front.text
    if is_dotprompt and front.template_format is None and _JINJA_BLOCK.search(body):
        raise PromptFormatError("it has Jinja tags such as {% if %}, which are not supported; use {{#name}}…{{/name}}")
    return StoredPrompt(
        text=_checked(body),
        version=version or sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12],
        template_format=front.template_format or ("mustache" if is_dotprompt else None),
        model=front.model or model,
        defaults=front.defaults,
    )


def phoenix_prompt(answer: object) -> StoredPrompt:
    """Return the prompt in Phoenix's answer for a version.

    Raises:
        PromptFormatError: the answer has no prompt, or the prompt is not text.
    """
    version = _table(_table(answer, "the answer").get("data"), "data")
    template = _table(version.get("template"), "data.template")
    if template.get("type") == "string" or isinstance(template.get("template"), str):
        text = template.get("template")
        if not isinstance(text, str):
            raise PromptFormatError("data.template.template is not text")
    else:
        messages = template.get("messages")
        if not isinstance(messages, list):
            raise PromptFormatError("data.template.messages is not a list")
        text = _phoenix_instructions([_table(message, "a message") for message in messages])
    model = version.get("model_name")
    return StoredPrompt(
        text=_checked(text),
        version=str(version.get("id") or sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12])[:200],
        template_format=template_format_named(version.get("template_format")) or "none",
        model=model if isinstance(model, str) and model else None,
    )


def _phoenix_instructions(messages: list[Mapping[str, Any]]) -> str:
    roles = [str(message.get("role", "")).lower() for message in messages]
    # The content of unused messages may be anything, such as an image.
    used = [
        (role, _phoenix_content(message.get("content")))
        for role, message in zip(roles, messages, strict=True)
        if role in {"system", "developer"}
    ]
    return joined_instructions(used or [("", _phoenix_content(messages[0].get("content")))] if messages else [])


def _phoenix_content(content: object) -> str:
    """The text of a message, whose content is a string or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise PromptFormatError("the content of a message is neither text nor a list")
    texts = []
    for part in content:
        text = part if isinstance(part, str) else _table(part, "a part of a message").get("text")
        if not isinstance(text, str):
            raise PromptFormatError("a message has a part that is not text")
        texts.append(text)
    return "".join(texts)


def litellm_prompt(answer: object) -> StoredPrompt:
    """Return the prompt in LiteLLM's answer to ``/prompts/…/info``.

    Raises:
        PromptFormatError: the answer has no prompt.
    """
    fields = _table(answer, "the answer")
    specification = _table(fields.get("prompt_spec"), "prompt_spec")
    content = _table(specification.get("litellm_params") or {}, "litellm_params").get("dotprompt_content")
    if isinstance(content, str) and content:
        return stored_text(content, is_dotprompt=True)
    raw = fields.get("raw_prompt_template")
    content = raw.get("content") if isinstance(raw, dict) else None
    if not isinstance(raw, dict) or not isinstance(content, str):
        raise PromptFormatError("it has neither litellm_params.dotprompt_content nor raw_prompt_template.content")
    metadata = raw.get("metadata")
    model = metadata.get("model") if isinstance(metadata, dict) else None
    return stored_text(content, is_dotprompt=True, model=model if isinstance(model, str) else None)


def registry_prompt(answer: object) -> StoredPrompt:
    """Return the prompt in a registry's answer: ``template``, and optionally ``template_format``, ``model`` and
    ``version``.

    Raises:
        PromptFormatError: the answer has no prompt.
    """
    fields = _table(answer, "the answer")
    text = next((value for name in _REGISTRY_TEXTS if isinstance(value := fields.get(name), str) and value), None)
    if text is None:
        raise PromptFormatError("it has the text in neither template, prompt nor text")
    model, version = fields.get("model"), fields.get("version")
    prompt = stored_text(
        text,
        model=model if isinstance(model, str) and model else None,
        version=str(version)[:200] if isinstance(version, str | int) else "",
    )
    declared = template_format_named(fields.get("template_format"))
    return prompt if declared is None else StoredPrompt(prompt.text, prompt.version, declared, prompt.model)


def _table(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise PromptFormatError(f"{name} is not a JSON object")
    return value


def _checked(text: str) -> str:
    if not text.strip():
        raise PromptFormatError("it is empty")
    if len(text) > MAX_PROMPT_CHARS:
        raise PromptFormatError(f"it has more than {MAX_PROMPT_CHARS:,} characters")
    return text
