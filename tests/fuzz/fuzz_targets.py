"""The fuzz targets by name, with their saved inputs."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from . import text_targets, wire_targets
from .target_result import Target

CORPUS: Final = Path(__file__).parent / "corpus"
"""Per target, small inputs to start from."""
CRASHES: Final = Path(__file__).parent / "crashes"
"""Per target, inputs that failed once."""

TARGETS: Final[Mapping[str, Target]] = {
    target.__name__: target
    for target in (
        wire_targets.client_frame,
        wire_targets.server_frame,
        wire_targets.mcp_http,
        wire_targets.mcp_stdio,
        wire_targets.upstream_line,
        wire_targets.http_request,
        text_targets.filter_language,
        text_targets.value_path,
        text_targets.argument_template,
        text_targets.json_schema,
        text_targets.api_document,
        text_targets.yaml_text,
        text_targets.saved_pipeline_file,
        text_targets.workflow_file,
        text_targets.settings_file,
        text_targets.audit_of_arguments,
        text_targets.redaction,
        text_targets.retry_after,
    )
}


def seeds(target: str) -> Iterator[tuple[str, bytes]]:
    """The saved inputs of a target: each file's name and content."""
    for directory in (CORPUS / target, CRASHES / target):
        if directory.is_dir():
            for file in sorted(directory.iterdir()):
                yield f"{directory.name}/{file.name}", file.read_bytes()


def seed_words(target: str) -> list[str]:
    """The words in the saved inputs, for the fuzzer to insert."""
    text = b"\n".join(data for _, data in seeds(target)).decode(errors="ignore")
    return sorted(set(re.findall(r"[A-Za-z$_<][\w./-]{1,40}", text, re.ASCII)))
