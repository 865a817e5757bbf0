"""An operation of an API: where its arguments are sent, and how they are encoded."""

from dataclasses import dataclass
from typing import Any, Final, Literal

from ...tools import JsonSchema

ParameterLocation = Literal["path", "query", "header", "cookie"]
BodyKind = Literal["json", "form", "multipart", "text", "binary"]

FILE_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "A file: its path in the workspace, or its name and its content as text or base64.",
    "properties": {
        "path": {"type": "string"},
        "text": {"type": "string"},
        "base64": {"type": "string"},
        "name": {"type": "string"},
    },
    "additionalProperties": False,
    "oneOf": [{"required": ["path"]}, {"required": ["text"]}, {"required": ["base64"]}],
}

TYPED_FILE_SCHEMA: Final[dict[str, Any]] = {
    **FILE_SCHEMA,
    "description": f"{FILE_SCHEMA['description']} The default of content_type comes from the name.",
    "properties": {**FILE_SCHEMA["properties"], "content_type": {"type": "string"}},
}
"""The schema of files whose type the document leaves open."""

NEXT_PAGE: Final = "next_page"
NEXT_PAGE_SCHEMA: Final[dict[str, Any]] = {
    "type": "string",
    "description": "From the previous page's answer; the other arguments stay the same.",
}


@dataclass(frozen=True, slots=True)
class ApiParameter:
    """One argument that goes into the path, the query, a header or a cookie."""

    name: str
    """The parameter's name in the API."""
    argument: str
    location: ParameterLocation
    style: str
    explode: bool
    as_json: bool = False
    """Whether the value is encoded as JSON, regardless of ``style``."""
    allow_reserved: bool = False
    """Whether reserved characters of URLs, such as ``/`` and ``:``, are sent unescaped (``allowReserved``)."""


@dataclass(frozen=True, slots=True)
class BodyField:
    """One argument that is a field of the body."""

    name: str
    argument: str
    required: bool = False
    file: bool = False
    content_type: str | None = None
    """The type of a part of a multipart body, if the document sets it."""
    types: str | None = None
    """The allowed types of a file, such as ``image/*, text/csv``, if the document leaves its type open."""
    deep: bool = False
    """Whether objects are encoded as ``name[key]``, not as JSON (style deepObject)."""
    joined: bool = False
    """Whether array items are one comma-separated form value (``explode: false``)."""
    allow_reserved: bool = False
    """See ``ApiParameter.allow_reserved``; for forms only."""


@dataclass(frozen=True, slots=True)
class ApiBody:
    """The encoding of a body in one media type: from one argument, or from one argument per field."""

    kind: BodyKind
    media_type: str
    required: bool
    argument: str | None = None
    """The argument with the whole body; None if there are ``fields``."""
    fields: tuple[BodyField, ...] = ()
    files_argument: str | None = None
    """The argument with the files of a multipart body without declared fields."""
    types: str | None = None
    """The allowed types of a file, such as ``image/*``, if the document leaves the type open. The type comes from
    ``content_type``, else from the name, else from ``media_type``.
    """
    declared_type: str = ""
    """The media type as declared in the document; callers choose it by this text."""
    choice: str | None = None
    """The argument that selects this media type (the default) or one of ``others``."""
    others: tuple["ApiBody", ...] = ()

    @property
    def arguments(self) -> dict[str, bool]:
        """The arguments of this media type, and whether each is required."""
        whole = {name: False for name in (self.files_argument,) if name is not None}
        if self.argument is not None:
            whole[self.argument] = self.required and self.files_argument is None
        return whole | {field.argument: field.required for field in self.fields}


@dataclass(frozen=True, slots=True)
class ApiOperation:
    """One operation, ready to be called."""

    name: str
    """The tool's name."""
    method: str
    path: str
    server: str
    """An absolute URL without a trailing slash."""
    description: str
    arguments: JsonSchema
    parameters: tuple[ApiParameter, ...]
    body: ApiBody | None
    next_page: str | None
    """The argument of a list operation that asks for the next page."""
    with_secret: bool
    """Whether the source's secret is sent. It is not sent if the document requires none, or if the request goes to an
    origin other than the source's.
    """
