"""``smart_file_query``: a question about one file, sent in the cheapest way that its kind allows."""

import base64
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from pydantic import Field, model_validator

from ....protocol.error_codes import CallError
from ....protocol.image_types import image_type
from ....providers import AttachedFile
from ...completions import ModelQuestion, ask_within, errors_of, prepared, read_bytes
from ...continued_work import continued
from ...tool import Arguments, ToolOutput, tool
from ...tool_context import ToolContext
from ...workspace_files import MAX_IMAGE_BYTES, MAX_TEXT_BYTES, BinaryFile
from ..chat import TIMEOUT_S
from .remote_files import MAX_UPLOAD_BYTES, UPLOAD_TIMEOUT_S, extracted, require_supported_kind

_NAME: Final = "smart_file_query"


class SmartFileQueryArguments(Arguments):
    """A question and a file."""

    question: str = Field(min_length=1, description="The question about the file.")
    file_path: str | None = Field(default=None, min_length=1, description="Path in the workspace.")
    file_id: str | None = Field(
        default=None,
        min_length=1,
        description="Instead of file_path: a file at Kimi, from an earlier answer or kimi_upload_files.",
    )
    provider: str = Field(default="auto", description="Provider of the model.")
    model: str | None = Field(default=None, description="Model id or alias, or auto.")
    continuation_id: str | None = Field(default=None, description="Conversation to continue.")

    @model_validator(mode="after")
    def _one_file(self) -> "SmartFileQueryArguments":
        if (self.file_path is None) == (self.file_id is None):
            raise ValueError("give either file_path (a file in the workspace) or file_id (a file at Kimi)")
        return self


@dataclass(frozen=True, slots=True)
class _Attachment:
    """A file in the form that the model receives."""

    method: Literal["embedded", "image", "extracted"]
    name: str
    file: AttachedFile | None = None
    image: str | None = None
    file_id: str | None = None
    """The file's id at Kimi."""
    uploaded: bool = False

    def as_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {"file": self.name, "method": self.method, "uploaded": self.uploaded}
        return data | {"file_id": self.file_id} if self.file_id else data


@tool(_NAME, read_only=False, open_world=True, timeout_s=TIMEOUT_S + UPLOAD_TIMEOUT_S)
async def smart_file_query(arguments: SmartFileQueryArguments, context: ToolContext) -> ToolOutput:
    """Ask a model about one file. Text is embedded in the prompt, an image is sent to a model with vision, and any
    other document is uploaded to Kimi for text extraction. `method` says which way was used; reuse `file_id` to avoid
    an upload.
    """
    question = ModelQuestion(
        arguments.question,
        model=arguments.model,
        provider=None if arguments.provider == "auto" else arguments.provider,
    )
    await prepared(question, context)  # reports errors before any file is uploaded
    async with continued(arguments.continuation_id, context) as conversation:
        attachment = await _attachment(arguments, context)
        try:
            result = await ask_within(conversation, _with_attachment(question, attachment), context, tool=_NAME)
        except CallError as error:
            if not attachment.uploaded:
                raise
            raise _with_file_id(error, attachment) from error
    return ToolOutput(result.text, {**result.with_text(), **attachment.as_data(), "continuation_id": conversation.id})


def embeddable(content: bytes) -> str | None:
    """Returns the text of a file that can be embedded in a prompt, or None."""
    if len(content) > MAX_TEXT_BYTES or b"\0" in content:
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


async def _attachment(arguments: SmartFileQueryArguments, context: ToolContext) -> _Attachment:
    if arguments.file_id is not None:
        text = await extracted(arguments.file_id, context)
        name = arguments.file_id
        return _Attachment("extracted", name, AttachedFile(name, text), file_id=arguments.file_id)
    path = arguments.file_path or ""
    file = await read_bytes(path, context, max_bytes=MAX_UPLOAD_BYTES, field="file_path")
    embedded = embeddable(file.content)
    if embedded is not None:
        return _Attachment("embedded", file.name, AttachedFile(file.name, embedded))
    kind = image_type(file.content)
    if kind is not None and len(file.content) <= MAX_IMAGE_BYTES:
        return _Attachment("image", file.name, image=f"data:{kind};base64,{base64.b64encode(file.content).decode()}")
    return await _extract(file, context)


async def _extract(file: BinaryFile, context: ToolContext) -> _Attachment:
    files = context.vendor_files("kimi")
    with errors_of("file_path"):
        require_supported_kind(file, "file-extract")
    context.progress(f"uploading {file.name} to Kimi for text extraction")
    remote = await files.upload(file.name, file.content, "file-extract")
    attachment = _Attachment("extracted", file.name, file_id=remote.id, uploaded=True)
    try:
        return replace(attachment, file=AttachedFile(file.name, await extracted(remote.id, context)))
    except CallError as error:
        raise _with_file_id(error, attachment) from error


def _with_attachment(question: ModelQuestion, attachment: _Attachment) -> ModelQuestion:
    if attachment.image is not None:
        return replace(question, images=(attachment.image,))
    return replace(question, files=(attachment.file,) if attachment.file else ())


def _with_file_id(error: CallError, attachment: _Attachment) -> CallError:
    """Adds the id of the uploaded file, so that a retry need not upload it again."""
    return type(error)(
        f"{error.message} The file is at Kimi as {attachment.file_id}; retry with file_id instead of file_path.",
        executed="yes",
        transient=error.transient,
        retry_after_ms=error.retry_after_ms,
        details={**(error.details or {}), "file_id": attachment.file_id},
    )
