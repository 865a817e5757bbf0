"""The settings of traces: the table, toold's variables, and OpenTelemetry's."""

from pathlib import Path

import pytest
from toold.daemon.config.otel_settings import OtelSettings
from toold.daemon.config.setting_sources import SettingsError, load_settings
from toold.daemon.config.settings_mapping import denied_paths
from toold.daemon.config.settings_report import settings_report

BASE = "OTEL_EXPORTER_OTLP_ENDPOINT"


def load(tmp_path: Path, toml: str = "", **env: str) -> OtelSettings | None:
    (tmp_path / "toold.toml").write_text(toml)
    return load_settings({}, env=env, cwd=tmp_path).otel


@pytest.mark.parametrize(
    ("toml", "env", "url"),
    [
        ('[otel]\nendpoint = "http://h:6006"', {}, "http://h:6006/v1/traces"),
        ('[otel]\nendpoint = "https://h/s/mine/"', {}, "https://h/s/mine/v1/traces"),
        ('[otel]\nendpoint = "http://h/v1/traces"', {}, "http://h/v1/traces"),
        ('[otel]\ntraces_endpoint = "http://h/other"', {}, "http://h/other"),
        ('[otel]\nendpoint = "http://h"', {"TOOLD_OTEL__ENDPOINT": "http://own"}, "http://own/v1/traces"),
        ('[otel]\nendpoint = "http://h"', {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x/y"}, "http://h/v1/traces"),
        ("", {BASE: "http://h:4318"}, "http://h:4318/v1/traces"),
        ("", {BASE: "http://h:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x/y"}, "http://x/y"),
        ('[otel]\ncontent = "full"', {BASE: "http://h:4318"}, "http://h:4318/v1/traces"),
    ],
)
def test_the_collector_is_named_in_one_place(tmp_path: Path, toml: str, env: dict[str, str], url: str) -> None:
    """toold's settings precede OpenTelemetry's variables; a base URL gets the path of traces."""
    settings = load(tmp_path, toml, **env)
    assert settings is not None
    assert settings.traces_url == url


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"OTEL_SERVICE_NAME": "mine"},
        {BASE: "http://h", "OTEL_SDK_DISABLED": "true"},
        {BASE: "http://h", "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_without_a_collector_there_are_no_traces(tmp_path: Path, env: dict[str, str]) -> None:
    """As OpenTelemetry's variables turn them off."""
    assert load(tmp_path, **env) is None


def test_names_and_headers_of_opentelemetrys_variables(tmp_path: Path) -> None:
    """Headers are pairs in percent-encoding; toold's settings precede."""
    headers = "authorization=Bearer%20k%3D1, x-team = a"
    settings = load(tmp_path, **{BASE: "http://h", "OTEL_EXPORTER_OTLP_HEADERS": headers, "OTEL_SERVICE_NAME": "mine"})
    assert settings is not None
    assert settings.read_headers({}) == {"authorization": "Bearer k=1", "x-team": "a"}
    assert (settings.service_name, settings.content) == ("mine", "none")


def test_headers_are_secrets(tmp_path: Path) -> None:
    """From a variable or a file, which no tool may read; no report shows them."""
    toml = (
        '[otel]\nendpoint = "http://h"\nheaders = { api_key = { env = "KEY" }, b = { file = "b.txt" }, c = "c-secret" }'
    )
    (tmp_path / "toold.toml").write_text(toml)
    (tmp_path / "b.txt").write_text("b-secret\n")
    settings = load_settings({}, env={}, cwd=tmp_path)
    assert settings.otel is not None
    assert settings.otel.read_headers({"KEY": "a-secret"}) == {"api_key": "a-secret", "b": "b-secret", "c": "c-secret"}
    assert tmp_path / "b.txt" in denied_paths(settings)
    report = settings_report(settings)["settings"]["otel"]
    assert report == {"value": "http://h/v1/traces, content none", "origin": "toold.toml"}
    assert "c-secret" not in repr(settings.otel)


@pytest.mark.parametrize(
    ("toml", "env", "message"),
    [
        ("otel = 7", {}, r"otel \(toold.toml\): must be a table"),
        ("[otel]", {}, "otel .*also needs endpoint, the URL of the collector"),
        ('[otel]\nendpoint = "h:1"', {}, "endpoint must be a URL that starts with http:// or https://"),
        ('[otel]\nendpoint = "http://a:b@h"', {}, "without a password"),
        ('[otel]\nendpoint = "http://h"\nconten = "full"', {}, "conten is not a setting; did you mean 'content'"),
        ('[otel]\nendpoint = "http://h"\ncontent = "some"', {}, "content .*none.*full"),
        ('[otel]\nendpoint = "http://h"\nqueue_spans = 0', {}, "queue_spans must be"),
        ('[otel]\nendpoint = "http://h"\nheaders = { a = 1 }', {}, "headers must be a table of names"),
        (
            '[otel]\nendpoint = "http://h"\nheaders = { "a b" = "c" }',
            {},
            "headers must be names and values of printable",
        ),
        ("", {BASE: "nonsense"}, r"otel \(environment\): endpoint must be a URL"),
        ("", {BASE: "http://h", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, toml: str, env: dict[str, str], message: str) -> None:
    """By the key, and without the value of a header."""
    with pytest.raises(SettingsError, match=message):
        load(tmp_path, toml, **env)
