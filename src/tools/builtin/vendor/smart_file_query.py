"""``smart_file_query``: a question about one file, which goes the shortest way that its kind allows."""

import base64
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal

from pydantic import Field, model_validator

from ....protocol.error_codes import CallError
from ....providers import AttachedFile, ProviderName
from ...completions import ModelQuestion, ask_within, errors_of, prepared, read_bytes
from ...tool import Answer, Arguments, tool
from ...tool_context import ToolContext
from ...workspace_files import MAX_IMAGE_BYTES, MAX_TEXT_BYTES, BinaryFile, image_type
from ..chat import TIMEOUT_S
from .remote_files import MAX_UPLOAD_BYTES, UPLOAD_TIMEOUT_S, extracted, files_of, require_of_use

_NAME: Final = "smart_file_query"


class SmartFileQueryArguments(Arguments):
    """A question, and about which file."""

    question: str = Field(min_length=1, description="What to find out about the file.")
    file_path: str | None = Field(default=None, min_length=1, description="A path below the workspace.")
    file_id: str | None = Field(
        default=None, min_length=1, description="Instead: a file at Kimi, from an earlier answer or kimi_upload_files."
    )
    provider: ProviderName | Literal["auto"] = Field(default="auto", description="Whose model answers.")
    model: str | None = Field(default=None, description="A model's id or alias, or auto.")
    continuation_id: str | None = Field(default=None, description="Goes on with the conversation of this id.")

    @model_validator(mode="after")
    def _one_file(self) -> "SmartFileQueryArguments":
        if (self.file_path is None) == (self.file_id is None):
            raise ValueError("give either file_path, a file below the workspace, or file_id, a file at Kimi")
        return self


@dataclass(frozen=True, slots=True)
class _Material:
    """A file as the model gets it."""

    how: Literal["embedded", "image", "extracted"]
    name: str
    file: AttachedFile | None = None
    image: str | None = None
    file_id: str | None = None
    """Where the file lies at Kimi."""
    uploaded: bool = False

    def told(self) -> dict[str, Any]:
        told: dict[str, Any] = {"file": self.name, "how": self.how, "uploaded": self.uploaded}
        return told | {"file_id": self.file_id} if self.file_id else told


@tool(_NAME, read_only=False, open_world=True, timeout_s=TIMEOUT_S + UPLOAD_TIMEOUT_S)
async def smart_file_query(arguments: SmartFileQueryArguments, context: ToolContext) -> Answer:
    """Ask a model about one file: text goes into the question, an image to a model that sees, and any other document
    is uploaded to Kimi, which reads its text. `how` says which way it went, and `file_id` saves the next upload.
    """
    question = ModelQuestion(
        arguments.question,
        model=arguments.model,
        provider=None if arguments.provider == "auto" else arguments.provider,
    )
    await prepared(question, context)  # what is wrong with it is told before a file is sent
    async with context.conversation(arguments.continuation_id) as conversation:
        material = await _material(arguments, context)
        try:
            asked = await ask_within(conversation, _about(material, question), context, tool=_NAME)
        except CallError as error:
            if not material.uploaded:
                raise
            raise _uploaded_for_nothing(error, material) from error
    return Answer(asked.text, {**asked.with_text(), **material.told(), "continuation_id": conversation.id})


def embeddable(content: bytes) -> str | None:
    """The text of a file that can stand in a question; None for another."""
    if len(content) > MAX_TEXT_BYTES or b"\0" in content:
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


async def _material(arguments: SmartFileQueryArguments, context: ToolContext) -> _Material:
    if arguments.file_id is not None:
        text = await extracted(arguments.file_id, context)
        name = arguments.file_id
        return _Material("extracted", name, AttachedFile(name, text), file_id=arguments.file_id)
    path = arguments.file_path or ""
    file = await read_bytes(path, context, max_bytes=MAX_UPLOAD_BYTES, field="file_path")
    text_of_it = embeddable(file.content)
    if text_of_it is not None:
        return _Material("embedded", file.name, AttachedFile(file.name, text_of_it))
    kind = image_type(file.content)
    if kind is not None and len(file.content) <= MAX_IMAGE_BYTES:
        return _Material("image", file.name, image=f"data:{kind};base64,{base64.b64encode(file.content).decode()}")
    return await _extract(file, context)


async def _extract(file: BinaryFile, context: ToolContext) -> _Material:
    files = files_of("kimi", context)
    with errors_of("file_path"):
        require_of_use(file, "file-extract")
    context.progress(f"sending {file.name} to Kimi, which reads its text")
    sent = await context.vendor("kimi", partial(files.upload, file.name, file.content, "file-extract"))
    material = _Material("extracted", file.name, file_id=sent.id, uploaded=True)
    try:
        return replace(material, file=AttachedFile(file.name, await extracted(sent.id, context)))
    except CallError as error:
        raise _uploaded_for_nothing(error, material) from error


def _about(material: _Material, question: ModelQuestion) -> ModelQuestion:
    if material.image is not None:
        return replace(question, images=(material.image,))
    return replace(question, files=(material.file,) if material.file else ())


def _uploaded_for_nothing(error: CallError, material: _Material) -> CallError:
    """The upload stands: who asks again need not repeat it."""
    return type(error)(
        f"{error.message} The file is at Kimi as {material.file_id}: ask again with file_id instead of file_path.",
        executed="yes",
        transient=error.transient,
        retry_after_ms=error.retry_after_ms,
        details={**(error.details or {}), "file_id": material.file_id},
    )
