"""A parser for ``multipart/form-data`` uploads (subset of RFC 7578). Pure."""

from dataclasses import dataclass, field
from email.message import Message


class FormError(ValueError):
    """The form is invalid, or a field is missing; the message says which."""


@dataclass(slots=True)
class MultipartForm:
    """A form's fields and files, by name."""

    texts: dict[str, str] = field(default_factory=dict)
    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    """File name and content."""

    def text(self, name: str) -> str:
        """Raises ``FormError`` if the field is missing."""
        if name not in self.texts:
            raise FormError(f"the form has no field {name!r}")
        return self.texts[name]

    def file(self, name: str) -> tuple[str, bytes]:
        """Raises ``FormError`` if the field is missing."""
        if name not in self.files:
            raise FormError(f"the form has no file {name!r}")
        return self.files[name]


def read_form(content_type: str, body: bytes) -> MultipartForm:
    """Parses the form in a request's body.

    Raises:
        FormError: the body is not a valid form.
    """
    boundary = _parameter("content-type", content_type, "boundary")
    if not content_type.startswith("multipart/form-data") or not boundary:
        raise FormError("the request is not multipart/form-data")
    form = MultipartForm()
    for part in (b"\r\n" + body).split(f"\r\n--{boundary}".encode())[1:]:
        if part.startswith(b"--"):
            return form
        head, separator, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        if not separator:
            break
        _add(form, head.decode(errors="replace"), content)
    raise FormError("the form is truncated")


def _add(form: MultipartForm, head: str, content: bytes) -> None:
    for line in head.split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().lower() != "content-disposition":
            continue
        field_name = _parameter(name, value, "name") or ""
        file_name = _parameter(name, value, "filename")
        if file_name is None:
            form.texts[field_name] = content.decode(errors="replace")
        else:
            form.files[field_name] = (file_name.replace("%22", '"'), content)


def _parameter(header: str, value: str, name: str) -> str | None:
    message = Message()
    message[header] = value
    param = message.get_param(name, header=header)
    return param if isinstance(param, str) else None
