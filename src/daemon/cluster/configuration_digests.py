"""Compares the settings of the nodes of a cluster: each node announces a digest of every setting. Pure."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec
from pydantic import BaseModel, SecretStr

from ...store import NodeRow

OF_ONE_NODE: Final = frozenset(
    {
        *("host", "port", "http_port", "tls_cert", "tls_key", "state_dir"),
        *("node_name", "peer_host", "cluster_secret", "cluster_secret_file", "store"),
        *("log_format", "log_level", "warm_up", "workers"),
    }
)
"""Settings that may differ between the nodes. Nodes with a different secret or database belong to another cluster."""


class NodeDetails(msgspec.Struct, frozen=True):
    """The version and the digests that a node announces."""

    version: str = ""
    settings: dict[str, str] = {}
    """The digest of each setting, and of the files that must be the same on all nodes."""


def digests(settings: BaseModel, files: Mapping[str, bytes], digest: Callable[[str], str]) -> dict[str, str]:
    """Returns the digests of the settings, except those of one node, and of the content of ``files``."""
    names = [name for name in type(settings).model_fields if name not in OF_ONE_NODE]
    shown = {name: digest(_text(getattr(settings, name))) for name in names}
    return shown | {name: digest(content.hex()) for name, content in files.items()}


def details_of(node: NodeRow) -> NodeDetails:
    """Returns the details that a node has announced; empty if it has announced nothing, or in the format of another
    version.
    """
    try:
        return msgspec.json.decode(node.details, type=NodeDetails)
    except msgspec.DecodeError:
        return NodeDetails()


def differing(own: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Returns the names of the settings that differ. Settings that only one of the versions has are skipped."""
    return sorted(name for name in own.keys() & other.keys() if own[name] != other[name])


def _text(value: object) -> str:
    """A text that is equal for equal values, in every process."""
    match value:
        case SecretStr():
            return value.get_secret_value()
        case Mapping():
            return _joined(f"{_text(key)}={_text(each)}" for key, each in sorted(value.items(), key=repr))
        case frozenset() | set():
            return _joined(sorted(_text(each) for each in value))
        case list() | tuple():
            return _joined(_text(each) for each in value)
        case BaseModel():
            return _joined(f"{name}={_text(getattr(value, name))}" for name in type(value).model_fields)
        case msgspec.Struct():
            return _joined(f"{name}={_text(getattr(value, name))}" for name in value.__struct_fields__)
        case re.Pattern():
            return str(value.pattern)
        case Path() | str() | int() | float() | None:
            return str(value)
    if dataclasses.is_dataclass(value):
        return _joined(f"{field.name}={_text(getattr(value, field.name))}" for field in dataclasses.fields(value))
    return type(value).__name__  # a function: it is created from another setting, which is compared


def _joined(parts: Iterable[str]) -> str:
    return "(" + ", ".join(parts) + ")"
