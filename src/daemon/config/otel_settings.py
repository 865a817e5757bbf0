"""The settings of traces, ``[otel]`` in toold.toml, and OpenTelemetry's own variables (docs/tracing.md)."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import unquote, urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from ...protocol.name_suggestions import close_names, did_you_mean
from ...tools import SecretLocation, anchored_secret, setting_message
from .provider_settings import KeyLocation

OTEL_PREFIX: Final = "TOOLD_OTEL__"
"""The prefix of variables: ``TOOLD_OTEL__SETTING``."""
TRACES_PATH: Final = "/v1/traces"
"""The path of OTLP over HTTP, which is appended to a base URL."""
_PROTOCOL: Final = "http/protobuf"

_ENDPOINTS: Final = frozenset({"endpoint", "traces_endpoint"})

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]{0,16384}")

_Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=128)]


class OtelSettings(BaseModel):
    """The destination and the content of traces."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    endpoint: str | None = None
    """The collector's base URL; ``TRACES_PATH`` is appended unless the URL ends with it."""
    traces_endpoint: str | None = None
    """The whole URL for traces, instead of ``endpoint``."""
    headers: Mapping[str, KeyLocation | SecretStr] = {}
    content: Literal["none", "full"] = "none"
    """Whether spans have arguments, results and messages."""
    service_name: _Name = "toold"
    project: _Name | None = None
    """Phoenix' project; None: the service's name."""
    queue_spans: Annotated[int, Field(ge=1, le=1_000_000)] = 8192
    queue_bytes: Annotated[int, Field(ge=1)] = 32 * 1024**2
    """The limit of the content that waits to be sent, in bytes."""

    @field_validator("endpoint", "traces_endpoint")
    @classmethod
    def _check_endpoint(cls, endpoint: str | None) -> str | None:
        if endpoint is None:
            return None
        try:
            parts = urlsplit(endpoint)
            fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            parts, fits = None, False
        if not fits or parts is None or re.search(r"\s", endpoint):
            raise PydanticCustomError("otel", "must be a URL that starts with http:// or https://")
        if parts.username is not None or parts.query or parts.fragment:
            raise PydanticCustomError("otel", "must be a URL without a password, ? and #; write keys in headers")
        return endpoint

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: Mapping[str, KeyLocation | SecretStr]) -> Mapping[str, KeyLocation | SecretStr]:
        for name, value in headers.items():
            text = value.get_secret_value() if isinstance(value, SecretStr) else ""
            if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(text):
                raise PydanticCustomError("otel", "must be names and values of printable ASCII")
        return headers

    @model_validator(mode="after")
    def _names_a_collector(self) -> Self:
        if self.endpoint is None and self.traces_endpoint is None:
            raise PydanticCustomError(
                "otel", "also needs endpoint, the URL of the collector, such as http://127.0.0.1:6006"
            )
        return self

    def __str__(self) -> str:
        return f"{self.traces_url}, content {self.content}"

    @property
    def traces_url(self) -> str:
        """The URL to which spans are sent."""
        if self.traces_endpoint is not None:
            return self.traces_endpoint
        base = (self.endpoint or "").rstrip("/")
        return base if base.endswith(TRACES_PATH) else base + TRACES_PATH

    @property
    def header_files(self) -> tuple[Path, ...]:
        """The files with keys, which no call may read."""
        locations = (value.file for value in self.headers.values() if isinstance(value, KeyLocation))
        return tuple(file for file in locations if file is not None)

    def read_headers(self, env: Mapping[str, str]) -> dict[str, str]:
        """Returns the headers with their current values.

        Raises:
            SecretUnavailableError: a value cannot be read; the message names its location.
        """
        return {
            name: value.get_secret_value()
            if isinstance(value, SecretStr)
            else SecretLocation(value.env, value.file).read_header_value(env)
            for name, value in self.headers.items()
        }


def read_otel(table: object) -> OtelSettings | None:
    """Returns the settings of traces; None if there are none.

    Raises:
        PydanticCustomError: the table is invalid; the message names the key, and no secret.
    """
    if table is None or isinstance(table, OtelSettings):
        return table
    if not isinstance(table, Mapping):
        raise _invalid("must be a table of toold.toml: [otel] with endpoint and other settings")
    try:
        return OtelSettings.model_validate(dict(table))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
    raise _invalid("; ".join(dict.fromkeys(map(_sentence, problems))))


def _sentence(problem: Any) -> str:
    key = next((step for step in problem["loc"] if isinstance(step, str)), "")
    if problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
        hint = did_you_mean(close_names(key, OtelSettings.model_fields, n=1))
        return f"{key} is not a setting; {hint or 'settings: ' + ', '.join(OtelSettings.model_fields)}"
    if key == "headers" and problem["type"] != "otel":
        return "headers must be a table of names with { env = … }, { file = … } or text"
    return f"{key} {setting_message(problem)}".strip()


def _invalid(message: str) -> PydanticCustomError:
    return PydanticCustomError("otel", "{message}", {"message": message})


def otel_in(env: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings in toold's variables: ``TOOLD_OTEL__SETTING``."""
    return {
        variable[len(OTEL_PREFIX) :].lower(): value
        for variable, value in env.items()
        if value and variable.upper().startswith(OTEL_PREFIX)
    }


def otel_fallbacks(env: Mapping[str, str]) -> dict[str, Any]:
    """Returns the settings in OpenTelemetry's variables; empty if they turn traces off or name no collector.

    Raises:
        PydanticCustomError: they require a protocol other than HTTP with protobuf.
    """
    if env.get("OTEL_SDK_DISABLED", "").lower() == "true" or env.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
        return {}
    table: dict[str, Any] = {}
    for setting in ("endpoint", "traces_endpoint"):
        if url := env.get(f"OTEL_EXPORTER_OTLP_{setting.upper()}", "").strip():
            table[setting] = url
    if table:
        protocol = env.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or env.get("OTEL_EXPORTER_OTLP_PROTOCOL") or _PROTOCOL
        if protocol != _PROTOCOL:
            message = f"needs OTEL_EXPORTER_OTLP_PROTOCOL={_PROTOCOL} and a collector's port for it, usually 4318"
            raise _invalid(message)
    headers = env.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS") or env.get("OTEL_EXPORTER_OTLP_HEADERS") or ""
    if headers.strip():
        table["headers"] = _pairs(headers)
    if service := env.get("OTEL_SERVICE_NAME"):
        table["service_name"] = service
    return table


def _pairs(text: str) -> dict[str, str]:
    """The headers of a variable: ``name=value,name=value``, with the values in percent-encoding."""
    pairs = (piece.partition("=") for piece in text.split(",") if piece.strip())
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


def merged_otel(table: object, env: Mapping[str, str]) -> object:
    """Returns the table of toold.toml with toold's variables over it and OpenTelemetry's below it; None if there is
    neither a table nor a variable that names a collector.

    Raises:
        PydanticCustomError: see ``otel_fallbacks``.
    """
    if table is not None and not isinstance(table, Mapping):
        return table
    own: dict[str, Any] = {**(table or {}), **otel_in(env)}
    named = not _ENDPOINTS.isdisjoint(own)
    if named:  # OpenTelemetry's variables must not name another collector
        env = {name: value for name, value in env.items() if not name.endswith("_ENDPOINT")}
    fallbacks = otel_fallbacks(env)
    if not own and _ENDPOINTS.isdisjoint(fallbacks):
        return None
    return {**fallbacks, **own}


def anchored_otel(table: object, base: Path) -> object:
    """Returns the table with the files of headers resolved in ``base``."""
    headers = table.get("headers") if isinstance(table, Mapping) else None
    if not isinstance(table, Mapping) or not isinstance(headers, Mapping):
        return table
    return {**table, "headers": {name: anchored_secret(value, base) for name, value in headers.items()}}
