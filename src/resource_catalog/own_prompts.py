"""The daemon's own prompts: one for each tool that works in steps, and for each saved pipeline. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..protocol.error_codes import InvalidArgumentsError
from ..sources import Entry
from ..tools import Tool, ToolsetView

_MAX_ARGUMENTS: Final = 20
"""The maximum number of arguments of a prompt, because people fill them in."""
_STEPS: Final = ("step", "relevant_files", "model")
"""The arguments of step-by-step tools that a person fills in; the model writes the others."""
_LISTS: Final = ("relevant_files",)
"""Arguments with several values, separated by commas."""


def own_prompts(view: ToolsetView) -> dict[str, Entry]:
    """Returns the prompts of a toolset, by name."""
    return {name: _entry(tool) for name, tool in view.tools.items() if tool.prompt}


def prompt_result(tool: Tool, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Returns the result of ``prompts/get``: a text that asks the model to call the tool.

    Raises:
        InvalidArgumentsError: a required argument is missing, or one is unknown.
    """
    listed = _arguments(tool)
    missing = [argument["name"] for argument in listed if argument["required"] and not arguments.get(argument["name"])]
    unknown = sorted(arguments.keys() - {argument["name"] for argument in listed})
    if missing or unknown:
        what = f"lacks {', '.join(missing)}" if missing else f"has no argument {unknown[0][:80]!r}"
        raise InvalidArgumentsError(f"The prompt {tool.name!r} {what}.")
    values = {name: _value(tool, name, text) for name, text in arguments.items() if text}
    steps = "step" in values
    then = "Follow the field `next` of each answer until no next step is required." if steps else "Report the result."
    shown = msgspec.json.format(msgspec.json.encode(values)).decode()
    text = f"Call the tool `{tool.name}` with these arguments, and others where its description asks for them:\n\n"
    return {
        "description": _first_line(tool.description),
        "messages": [{"role": "user", "content": {"type": "text", "text": f"{text}{shown}\n\n{then}"}}],
    }


def argument_choices(tool: Tool, argument: str) -> list[str]:
    """Returns the values that the schema allows for an argument; empty if it does not name them."""
    schema = _properties(tool).get(argument, {})
    choices = schema.get("enum", [])
    return [str(choice) for choice in choices] if isinstance(choices, list) else []


def _entry(tool: Tool) -> Entry:
    return {"name": tool.name, "description": _first_line(tool.description), "arguments": _arguments(tool)}


def _arguments(tool: Tool) -> list[dict[str, Any]]:
    properties = _properties(tool)
    required = tool.info.input_schema.get("required", [])
    names = [name for name in _STEPS if name in properties] if tool.conversational else _of_pipeline(tool, properties)
    return [
        {
            "name": name,
            "description": str(properties[name].get("description", "")),
            "required": name in required or name == "step",
        }
        for name in names[:_MAX_ARGUMENTS]
    ]


def _of_pipeline(tool: Tool, properties: Mapping[str, Any]) -> list[str]:
    """The arguments that a saved pipeline defines itself, the required ones first."""
    required = tool.info.input_schema.get("required", [])
    own = [name for name in properties if name not in {"resume", "on_unknown", "dry_run"}]
    return sorted(own, key=lambda name: name not in required)


def _properties(tool: Tool) -> Mapping[str, Any]:
    properties = tool.info.input_schema.get("properties", {})
    return {name: schema for name, schema in properties.items() if isinstance(schema, dict)}


def _value(tool: Tool, name: str, text: str) -> Any:
    """Converts the text that a person has entered to a value of the argument's type."""
    schema = _properties(tool).get(name, {})
    if name in _LISTS or schema.get("type") == "array":
        return [part.strip() for part in text.split(",") if part.strip()]
    if schema.get("type") in {"integer", "number", "boolean", "object"}:
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return text
    return text


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
