"""Ignores options that the named model does not support, as earlier servers did."""

from dataclasses import replace
from typing import Final

from ...providers import Model
from ..model_question import AUTO, ModelQuestion
from ..tool_context import ToolContext
from .model_selection import ModelRequirements, unsupported

_NO_TOKENS: Final = 0
"""The number of tokens does not matter here."""


def supported_question(question: ModelQuestion, context: ToolContext) -> ModelQuestion:
    """For clients of an earlier server, removes the options and images that the model does not support, with a notice
    for each.

    For other clients the question is unchanged, so that ``select_model`` refuses it and names models that support it.
    Without a named model, one is chosen that supports all options.

    Raises:
        InvalidArgumentsError: the model is unknown.
    """
    if question.model is None or question.model.strip().lower() == AUTO or not context.former_client:
        return question
    model = context.daemon.catalog.resolve(question.model)
    question, problems = without_unsupported(question, model)
    for option, why in problems:
        # Without the images the answer may be wrong, so every call gets the notice.
        is_image = option == "images"
        context.accept_former(f"{option} {'are' if is_image else 'is'} ignored: {why}.", each_time=is_image)
    return question


def without_unsupported(question: ModelQuestion, model: Model) -> tuple[ModelQuestion, list[tuple[str, str]]]:
    """The question without unsupported options, and each removed option with the reason. Pure."""
    problems: list[tuple[str, str]] = []

    def check(requirements: ModelRequirements, without: ModelQuestion) -> None:
        nonlocal question
        problem = unsupported(model, requirements)
        if problem is not None:
            problems.append(problem)
            question = without

    check(ModelRequirements(_NO_TOKENS, web_search=question.web_search), replace(question, web_search=False))
    # Checked after web search, because some models cannot think during a search.
    thinking = ModelRequirements(_NO_TOKENS, thinking=question.thinking, web_search=question.web_search)
    check(thinking, replace(question, thinking=None))
    temperature = ModelRequirements(_NO_TOKENS, temperature=question.temperature is not None)
    check(temperature, replace(question, temperature=None))
    urls = any(image.startswith("https:") for image in question.images)
    images = ModelRequirements(_NO_TOKENS, images=bool(question.images), image_urls=urls)
    check(images, replace(question, images=()))
    return question, problems
