"""What an operation of an API is: where its arguments go, and how they are written there."""

from dataclasses import dataclass
from typing import Any, Final, Literal

from ...tools import JsonSchema

Where = Literal["path", "query", "header", "cookie"]
BodyKind = Literal["json", "form", "multipart", "text", "binary"]

FILE_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "A file: the path of one in the workspace, or its content as text or base64, then with a name.",
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
    "description": f"{FILE_SCHEMA['description']} Its content_type is as its name says, where it is not given.",
    "properties": {**FILE_SCHEMA["properties"], "content_type": {"type": "string"}},
}
"""Where the document leaves a file's type open."""


@dataclass(frozen=True, slots=True)
class ApiParameter:
    """One argument that goes into the path, the query, a header or a cookie."""

    name: str
    """The API's own."""
    argument: str
    where: Where
    style: str
    explode: bool
    as_json: bool = False
    """Written as JSON, whatever its style."""


@dataclass(frozen=True, slots=True)
class BodyField:
    """One argument that is a field of the body."""

    name: str
    argument: str
    file: bool = False
    content_type: str | None = None
    """Of a part of a multipart body, where the document says so."""
    deep: bool = False
    """An object is written as ``name[key]``, not as JSON (style deepObject)."""
    joined: bool = False
    """The items of an array are one value of a form, with commas between them (``explode: false``)."""


@dataclass(frozen=True, slots=True)
class ApiBody:
    """How the body is made: of one argument, or of one a field."""

    kind: BodyKind
    media_type: str
    required: bool
    argument: str | None = None
    """The one that is the whole body; None where ``fields`` are."""
    fields: tuple[BodyField, ...] = ()
    types: str | None = None
    """Of a file, where the document leaves its type open: what it may be, such as ``image/*``. Its ``content_type``
    says what it is, else its name; ``media_type`` is sent where neither does."""


@dataclass(frozen=True, slots=True)
class ApiOperation:
    """One operation, ready to be asked for."""

    name: str
    """Of the tool."""
    method: str
    path: str
    server: str
    """Absolute, without a slash at its end."""
    description: str
    arguments: JsonSchema
    parameters: tuple[ApiParameter, ...]
    body: ApiBody | None
    with_secret: bool
    """Whether the source's secret goes along: not where the document says that none is asked for, nor to a server of
    another origin than the source's own."""

    @property
    def where(self) -> str:
        """For people: ``GET /contacts/{id}``."""
        return f"{self.method} {self.path}"
