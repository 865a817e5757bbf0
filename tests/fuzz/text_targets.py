"""Fuzz targets: languages and documents. Filters, paths, templates, schemas, API documents, YAML, configuration files,
and what the audit makes of arguments.
"""

import datetime as dt
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

import msgspec
from toold.audit.argument_shape import shape
from toold.audit.audit_content import MAX_CONTENT_BYTES, MAX_MESSAGE_BYTES, content_reducer, redact_message
from toold.audit.redaction import redact_text
from toold.daemon.config.setting_sources import SettingsError, load_settings
from toold.protocol.error_codes import InvalidArgumentsError
from toold.protocol.retry_after import retry_after_ms
from toold.shaping import ShapingError, compile_template
from toold.shaping.filter_matching import compile_filter, filter_rows
from toold.shaping.filter_parser import parse_filter
from toold.shaping.shaping_errors import LanguageError
from toold.shaping.value_paths import MISSING, explain_missing, find_value, getter, parse_path
from toold.sources.openapi.api_document import ApiDocumentError, may_follow, outside_references, read_document
from toold.sources.openapi.api_reader import UnreadableApiError, read_api
from toold.tools import JsonSchema, YamlError, read_yaml
from toold.tools.builtin.workflow.workflow_loader import DefinitionError, read_definition
from toold.tools.builtin.workflow.workflow_tool import workflow_tool
from toold.tools.orchestration.argument_templates import ArgumentTemplate
from toold.tools.orchestration.saved_pipelines import SavedPipelineError, saved_pipeline
from toold.tools.tool_definition import TOOL_NAME, Tool
from toold.tools.tool_loading import load_registry

from .target_result import in_two, text_of_input

_MAX_YAML_DEPTH: Final = 50
_MAX_ALIASED: Final = 100_000
_SOME_VALUES: Final = 20_000
_SECRET: Final = "sk-Zq3vT8wLm2Nc5RxY7bKd"
_SHAPE: Final = re.compile(r"(?:str|list|object)\[\d+\]|…\d+|int|float|bool|null|other")
_URI: Final = "https://api.example/v1/openapi.json"


def _json(data: bytes) -> Any:
    """The value of JSON, as a frame can have it; None if it is not JSON."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _check_position(error: LanguageError) -> None:
    assert error.what
    assert 1 <= error.position <= len(error.text) + 1


def filter_language(data: bytes) -> bool:
    """A filter (first line) is rejected at a position, or its text parses to an equal one. Then every test of a row
    (the JSON after it) returns, and filtering a list keeps the rows that pass.
    """
    text, rows = in_two(data)
    try:
        condition = parse_filter(text_of_input(text))
    except LanguageError as error:
        _check_position(error)
        return False
    assert parse_filter(str(condition)) == condition
    passes = compile_filter(condition)
    result = _json(rows)
    table = result if isinstance(result, list) else [result]
    assert filter_rows(table, condition) == [row for row in table if passes(row)]
    return True


def value_path(data: bytes) -> bool:
    """A path (first line) is rejected at a position, or its text parses to an equal one. Then every lookup in a value
    (the JSON after it) finds the same, and a missing value is explained.
    """
    text, rest = in_two(data)
    try:
        path = parse_path(text_of_input(text))
    except LanguageError as error:
        _check_position(error)
        return False
    assert parse_path(str(path)) == path
    value = _json(rest)
    found = find_value(path, value)
    assert getter(path)(value) == (None if found is MISSING else found)
    if found is MISSING:
        assert str(path) in explain_missing(path, value)
    return True


def argument_template(data: bytes) -> bool:
    """Arguments with templates (the first line: JSON, else text) are rejected, or resolved to a JSON value with
    a context (the JSON after it); what a plan says about them beforehand agrees.
    """
    text, rest = in_two(data)
    value = _json(text)
    if value is None:
        value = text.decode(errors="replace")
    result = _json(rest)
    context = result if isinstance(result, dict) else {}
    planned = ArgumentTemplate(value, context, "arguments")
    list(planned.mismatches(_echo()))
    try:
        template = compile_template(value)
        resolved = template.resolve(context)
    except ShapingError as error:
        if isinstance(error, LanguageError):
            _check_position(error)
            assert planned.template is None
        return False
    msgspec.json.encode(resolved)
    assert planned.template is not None
    assert planned.template.resolve(context) == resolved
    return True


@cache
def _echo() -> Tool:
    return next(tool for tool in load_registry().tools if tool.name == "echo")


def json_schema(data: bytes) -> bool:
    """A schema of another server's tool (first line) is rejected, or arguments (the JSON after it) are accepted or
    rejected with the wrong fields.
    """
    schema, arguments = map(_json, in_two(data))
    if not isinstance(schema, dict):
        return False
    try:
        checker = JsonSchema(schema)
    except ValueError as error:
        assert str(error)
        return False
    try:
        checker.check("fuzzed", arguments if isinstance(arguments, dict) else {})
    except InvalidArgumentsError as error:
        assert error.message
    return True


def api_document(data: bytes) -> bool:
    """A document is rejected, or its operations have unique valid names, schemas and absolute URLs."""
    try:
        document = read_document(data, "it")
        others = [may_follow(uri, _URI) for uri in outside_references(document, _URI)]
        api = read_api({_URI: document}, _URI, prefix="api", absent={}, base_url=None, secret_at=("header", "x-key"))
    except (ApiDocumentError, UnreadableApiError) as error:
        assert str(error)
        return False
    assert set(others) <= {True, False}
    assert len({operation.name for operation in api.operations}) == len(api.operations)
    for operation in api.operations:
        assert TOOL_NAME.fullmatch(operation.name)
        assert operation.server.startswith(("http://", "https://"))
        msgspec.json.encode(operation.arguments.schema)
    assert all(note.what for note in api.notes)
    return bool(api.operations)


def yaml_text(data: bytes) -> bool:
    """YAML is rejected, or becomes JSON values of limited depth with text keys."""
    try:
        value = read_yaml(data, max_depth=_MAX_YAML_DEPTH, max_aliased=_MAX_ALIASED)
    except YamlError as error:
        assert str(error)
        return False
    for part, depth in _parts(value):
        assert depth <= _MAX_YAML_DEPTH
        assert part is None or type(part) in {dict, list, str, int, float, bool}
        if isinstance(part, dict):
            assert all(isinstance(key, str) for key in part)
    return True


def _parts(value: Any) -> Iterator[tuple[Any, int]]:
    """The values in a value, as far as ``_SOME_VALUES``: aliases can repeat them a million times."""
    waiting, number = [(value, 0)], 0
    while waiting and number < _SOME_VALUES:
        part, depth = waiting.pop()
        yield part, depth
        number += 1
        if isinstance(part, dict | list):
            waiting += [(item, depth + 1) for item in (part.values() if isinstance(part, dict) else part)]


# --- files of the operator --------------------------------------------------------------------------------------------


@cache
def _directory() -> tuple[Path, TemporaryDirectory[str]]:
    """A directory, which is deleted at exit."""
    directory = TemporaryDirectory(prefix="toold-fuzz-")
    return Path(directory.name), directory


def _file(name: str, data: bytes) -> Path:
    path = _directory()[0] / name
    path.write_bytes(data)
    return path


def saved_pipeline_file(data: bytes) -> bool:
    """A file (its first line is its suffix) becomes a tool, or is rejected with a reason."""
    suffix, content = in_two(data)
    path = _file("fuzzed.yaml" if suffix == b"yaml" else "fuzzed.toml", content)
    try:
        tool = saved_pipeline(path)
    except SavedPipelineError as error:
        assert str(error)
        return False
    msgspec.json.encode(cast("JsonSchema", tool.arguments).schema)
    return True


def workflow_file(data: bytes) -> bool:
    """A file becomes a workflow tool, or is rejected with a reason."""
    try:
        tool = workflow_tool(read_definition(_file("fuzzed.toml", data)))
    except DefinitionError as error:
        assert str(error)
        return False
    assert tool.name == "fuzzed"
    return True


def settings_file(data: bytes) -> bool:
    """``toold.toml`` with its toolsets, sources and bindings is valid, or rejected with a reason on one line."""
    path = _file("fuzzed-settings.toml", data)
    try:
        load_settings({"config": path}, env={}, cwd=path.parent)
    except SettingsError as error:
        assert str(error)
        assert "\n" not in str(error)
        return False
    return True


# --- the audit --------------------------------------------------------------------------------------------------------


def audit_of_arguments(data: bytes) -> bool:
    """Of arguments the audit keeps, within its limits, their types and lengths, or a copy without a secret."""
    value = _json(data)
    reduced = shape(value)
    assert len(msgspec.json.encode(reduced)) <= 4096
    for part, _ in _parts(reduced):
        assert isinstance(part, dict | list) or _SHAPE.fullmatch(part)
    content = content_reducer("full")({"note": value, "key": f"the key {_SECRET} is secret"})
    assert content is not None
    assert len(content.encode()) <= MAX_CONTENT_BYTES
    assert _SECRET not in content
    assert len(msgspec.json.encode(redact_message(value))) <= MAX_MESSAGE_BYTES
    return value is not None


def redaction(data: bytes) -> bool:
    """A secret is removed from any text around it, and a second pass changes nothing."""
    text = text_of_input(data)
    for spaced in (f"{text} {_SECRET} {text}", f"{text}\n{_SECRET}\n{text}"):
        assert _SECRET not in redact_text(spaced)
    once = redact_text(text)
    return once == text


def retry_after(data: bytes) -> bool:
    """A header of a server is a time from now, or ignored."""
    result = retry_after_ms(text_of_input(data), dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    assert result is None or 0 <= result <= 1e12
    return result is not None
