"""Reads the operations of an OpenAPI document; invalid ones are omitted. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin

from ...tools import JsonSchema
from ..operation_filter import OperationFacts, OperationSelection
from ..source import SourceNote, SourceNotes
from ..source_setting_types import is_url
from ..source_tool_names import default_operation_id, tool_name
from .api_operation import NEXT_PAGE, NEXT_PAGE_SCHEMA, ApiOperation
from .api_parameters import ArgumentTable, declared_parameters, read_parameter
from .json_references import BrokenReferenceError, DocumentNode, JsonReferences
from .list_operations import may_have_pages
from .openapi_schemas import MAX_SUBSCHEMAS, MAX_TOTAL_SUBSCHEMAS, MIN_SUBSCHEMAS, SchemaReader
from .parameter_encoding import has_dot_segment
from .request_body_schema import read_body
from .request_origin import origin

METHODS: Final = ("get", "put", "post", "delete", "patch")
"""The methods that become tools."""
_OTHER_METHODS: Final = ("head", "options", "trace", "query")
MAX_DESCRIPTION_CHARS: Final = 1_000
MAX_OPERATIONS: Final = 2_000


class UnreadableApiError(Exception):
    """The document is not a supported OpenAPI document; the message says why, and how to fix it."""


class _NoOperationError(Exception):
    """An operation cannot become a tool; the message says why."""


@dataclass(frozen=True, slots=True)
class ApiDescription:
    """The content of an API document."""

    title: str
    operations: tuple[ApiOperation, ...]
    notes: tuple[SourceNote, ...]
    excluded: int = 0
    """The number of operations that are not selected."""


def read_api(
    documents: Mapping[str, dict[str, Any]],
    uri: str,
    *,
    prefix: str,
    absent: Mapping[str, str],
    base_url: str | None,
    secret_at: tuple[str, str] | None,
    selection: OperationSelection | None = None,
) -> ApiDescription:
    """Reads the operations of the document at ``uri``, one of ``documents``.

    Args:
        documents: the document and its referenced documents, by URL.
        uri: the document's URL; its servers may be relative to it.
        prefix: the first part of the tools' names.
        absent: URLs of missing documents, with the reason.
        base_url: replaces all servers of the document.
        selection: selects the operations that become tools; None selects all.
        secret_at: ``header`` or ``query``, and the name of the parameter that carries the secret. It is not an
            argument.

    Raises:
        UnreadableApiError: the document is not OpenAPI, or has an unsupported version.
    """
    document = documents[uri]
    _check_version(document)
    selection = selection or OperationSelection((), ())
    root, references = DocumentNode(document, uri), JsonReferences(documents, absent)
    return _ApiReader(root, references, prefix, base_url, secret_at, selection).api()


def _check_version(document: Mapping[str, Any]) -> None:
    if "swagger" in document:
        raise UnreadableApiError(
            f"it is Swagger {str(document['swagger'])[:10]}; convert it to OpenAPI 3, as converter.swagger.io does"
        )
    version = str(document.get("openapi", ""))
    if not re.fullmatch(r"3(\.\d+){0,2}\S*", version):
        raise UnreadableApiError(
            f"its openapi is {version[:20]!r}; 3.0 and 3.1 are supported"
            if version
            else "it has no `openapi: 3.…` at its top level"
        )
    if not isinstance(document.get("paths"), dict):
        raise UnreadableApiError("it has no paths")


class _ApiReader:
    def __init__(
        self,
        root: DocumentNode,
        references: JsonReferences,
        prefix: str,
        base_url: str | None,
        secret_at: tuple[str, str] | None,
        selection: OperationSelection,
    ) -> None:
        self._root = root
        self._secret_at = secret_at
        self._selection = selection
        self._too_many = 0
        self._references = references
        self._prefix = prefix
        self._base_url = base_url
        self._notes: list[SourceNote] = []
        self._operations: dict[str, ApiOperation] = {}
        self._subschemas_left = MAX_TOTAL_SUBSCHEMAS
        # The base of relative server URLs; a file has no host.
        self._base = root.uri
        self._server = self._server_of(root.value)
        if not is_url(root.uri) and self._server is not None:
            self._base = self._server

    def api(self) -> ApiDescription:
        for path, item in self._root.value["paths"].items():
            if path.startswith("x-"):
                continue
            for method, operation, shared in self._operations_of(path, self._root.part(item)):
                self._add(method, path, operation, shared)
        if self._too_many:
            what = f"the document has {self._too_many:,} more than {MAX_OPERATIONS:,} operations"
            what += "; choose with include and exclude"
            self._notes.append(SourceNote("omitted", "paths", what))
        self._notes += (SourceNote("omitted", setting, what) for setting, what in self._selection.unmatched())
        info = self._root.value.get("info")
        title = info.get("title") if isinstance(info, dict) else None
        return ApiDescription(
            title if isinstance(title, str) else "",
            tuple(self._operations.values()),
            tuple(self._notes),
            self._selection.excluded,
        )

    def _operations_of(self, path: str, item: DocumentNode) -> Iterator[tuple[str, DocumentNode, DocumentNode]]:
        """Yields method, operation and path item."""
        notes = SourceNotes(path)
        try:
            resolved = self._references.resolve(item)
            if not isinstance(resolved.value, dict):
                notes.omitted("it is not an object")
            else:
                for method in (other for other in _OTHER_METHODS if other in resolved.value):
                    self._notes.append(
                        SourceNote("omitted", f"{method.upper()} {path}", f"{method.upper()} does not become a tool")
                    )
                for method in METHODS:
                    if method in resolved.value:
                        yield method.upper(), resolved.part(resolved.value[method]), resolved
        except BrokenReferenceError as error:
            notes.omitted(str(error))
        self._notes += notes.collected()

    def _add(self, method: str, path: str, operation: DocumentNode, item: DocumentNode) -> None:
        if not self._selection.selects(self._facts(method, path, operation)):
            return
        if len(self._operations) >= MAX_OPERATIONS:
            self._too_many += 1
            return
        notes = SourceNotes(f"{method} {path}")
        try:
            created = self._create(method, path, operation, item, notes)
        except (_NoOperationError, BrokenReferenceError, ValueError, RecursionError) as error:
            notes.omitted(str(error) or type(error).__name__)
        else:
            self._operations[created.name] = created
        self._notes += notes.collected()

    def _facts(self, method: str, path: str, operation: DocumentNode) -> OperationFacts:
        try:  # some documents have each operation in a separate file
            declared = self._references.resolve(operation).value
        except BrokenReferenceError:
            declared = {}
        declared = declared if isinstance(declared, dict) else {}
        tags = declared.get("tags")
        return OperationFacts(
            _operation_id(declared) or default_operation_id(method, path),
            tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
            path,
            method,
        )

    def _create(
        self, method: str, path: str, node: DocumentNode, item: DocumentNode, notes: SourceNotes
    ) -> ApiOperation:
        node = self._references.resolve(node)
        operation = node.value
        if not isinstance(operation, dict):
            raise _NoOperationError("it is not an object")
        own = self._server_of(operation) or self._server_of(item.value)
        server = own or self._server
        if server is None:
            raise _NoOperationError("it has no server URL; set base_url")
        if own is not None and self._base_url is None and self._base != self._root.uri:
            self._note_relative_server(operation if self._server_of(operation) else item.value, own, notes)
        sent_path = _cleaned(path, notes)
        if has_dot_segment(sent_path):
            raise _NoOperationError("its path has a . or .. segment")
        reader = SchemaReader(self._references, notes, max(MIN_SUBSCHEMAS, min(MAX_SUBSCHEMAS, self._subschemas_left)))
        table = ArgumentTable()
        declared = declared_parameters(item, node, sent_path, self._references, notes)
        parameters = tuple(
            read_parameter(parameter, table, reader, notes)
            for parameter in declared
            if not self._is_secret(parameter.location, parameter.name)
        )
        body = None
        if "requestBody" in operation:
            body = read_body(node.part(operation["requestBody"]), table, reader, notes)
        next_page = None
        if method == "GET" and may_have_pages(node, sent_path, self._references):
            next_page = table.add("list", NEXT_PAGE, NEXT_PAGE_SCHEMA, required=False)
        arguments = JsonSchema(table.schema(reader.definitions))
        self._subschemas_left -= reader.subschema_count
        return ApiOperation(
            name=self._name(operation, method, path, notes),
            method=method,
            path=sent_path,
            server=server,
            description=_description(operation, item.value, f"{method} {path}"),
            arguments=arguments,
            parameters=parameters,
            body=body,
            next_page=next_page,
            with_secret=self._with_secret(operation, server, notes),
        )

    def _is_secret(self, location: str, name: str) -> bool:
        return self._secret_at is not None and (location, name.lower()) == (
            self._secret_at[0],
            self._secret_at[1].lower(),
        )

    def _name(self, operation: Mapping[str, Any], method: str, path: str, notes: SourceNotes) -> str:
        operation_id = _operation_id(operation)
        if operation_id is None:
            operation_id = default_operation_id(method, path)
            notes.repaired("it has no operationId; named by its method and path")
        name = tool_name(self._prefix, operation_id, self._operations)
        if name != tool_name(self._prefix, operation_id, ()):
            notes.repaired(f"another operation has the id {operation_id[:80]!r}; this one is {name}")
        return name

    def _server_of(self, holder: Any) -> str | None:
        """Returns the absolute URL of the first server of an operation, path or document; None without servers."""
        if self._base_url is not None:
            return self._base_url.rstrip("/")
        servers = holder.get("servers") if isinstance(holder, dict) else None
        if holder is self._root.value and not servers:
            servers = [{"url": "/"}]
        for server in servers if isinstance(servers, list) else []:
            if isinstance(server, dict) and isinstance(url := server.get("url"), str):
                absolute = _absolute(_expand_variables(url, server.get("variables")), self._base)
                if absolute is not None:
                    return absolute.rstrip("/")
        return None

    @staticmethod
    def _note_relative_server(holder: Mapping[str, Any], used: str, notes: SourceNotes) -> None:
        """Notes that a server URL has no host, in a document that was read from a file."""
        if not any(is_url(str(server.get("url"))) for server in holder["servers"] if isinstance(server, dict)):
            notes.repaired(f"its server URL has no host; {used} is used")

    def _with_secret(self, operation: Mapping[str, Any], server: str, notes: SourceNotes) -> bool:
        if operation.get("security") == []:
            return False
        if self._server is None or origin(server) != origin(self._server):
            notes.repaired(f"its server is {origin(server)}, not that of the source; no secret is sent")
            return False
        return True


def _operation_id(operation: Mapping[str, Any]) -> str | None:
    operation_id = operation.get("operationId")
    return operation_id if isinstance(operation_id, str) and operation_id.strip() else None


def _absolute(url: str, base: str) -> str | None:
    try:
        absolute = urljoin(base, url)
        origin(absolute)
    except ValueError:
        return None
    return absolute if re.match(r"https?://[^/\s]+", absolute) and not re.search(r"\s", absolute) else None


def _expand_variables(url: str, variables: Any) -> str:
    """Returns a server's URL with the defaults of its variables."""

    def default(match: re.Match[str]) -> str:
        variable = variables.get(match[1]) if isinstance(variables, dict) else None
        return str(variable.get("default", "")) if isinstance(variable, dict) else ""

    return re.sub(r"\{([^{}]*)\}", default, url)


def _cleaned(path: str, notes: SourceNotes) -> str:
    plain = path.partition("#")[0]
    if plain != path:
        notes.repaired("its path has a fragment, which is not sent")
    if not plain.startswith("/"):
        notes.repaired("its path does not start with a slash")
        plain = f"/{plain}"
    return plain


def _description(operation: Mapping[str, Any], item: Mapping[str, Any], method_and_path: str) -> str:
    """Returns the document's description, followed by method and path."""
    texts: list[str] = []
    for holder in (operation, item):
        for key in ("summary", "description"):
            part = holder.get(key)
            if isinstance(part, str) and part.strip() and part.strip() not in texts:
                texts.append(part.strip())
        if texts:
            break
    text = "\n\n".join(texts)
    if len(text) > MAX_DESCRIPTION_CHARS:
        text = text[: MAX_DESCRIPTION_CHARS - 1] + "…"
    return f"{text}\n\n{method_and_path}" if text else method_and_path
