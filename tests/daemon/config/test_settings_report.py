"""The settings as the operator sees them."""

from pathlib import Path
from typing import Any

from toold.daemon.config.settings_report import settings_report


def test_the_settings_in_effect_are_reported_without_secrets(settings_with: Any, tmp_path: Path) -> None:
    """Each setting with its value and origin; of keys and tables only that they are set, or their names."""
    (tmp_path / "toold.toml").write_text(
        'max_running = 7\n[sources.crm]\ntype = "mcp"\ncommand = ["x"]\nenv = { KEY = "s3cret" }\n'
    )
    settings = settings_with(KIMI_API_KEY="sk-s3cret-of-mine", TOOLD_GLM_BASE_URL="https://me:s3cret@h.example")
    report = settings_report(settings)
    assert "s3cret" not in str(report)
    assert report["settings"]["max_running"] == {"value": "7", "origin": "toold.toml"}
    assert report["settings"]["kimi_api_key"] == {"value": "set", "origin": "KIMI_API_KEY"}
    assert report["settings"]["sources"] == {"value": "crm", "origin": "toold.toml"}
    assert report["settings"]["audit_keep_days"] == {"value": "30", "origin": "default"}
    assert (report["config"], report["simulated"]) == (str(tmp_path / "toold.toml"), False)


def test_tables_are_reported_without_their_values(settings_with: Any, tmp_path: Path) -> None:
    """Of a table only what it is about, or the names of what is set in it."""
    (tmp_path / "toold.toml").write_text(
        '[user_credentials]\npage = "https://page.example/x?token=s3cret"\n'
        '[user_credentials.secret_manager]\nproject = "s3cret-project"\nservice_account = "s3cret.json"\n'
        '[deploy]\nregistries = ["https://registry.example"]\n'
        '[prompts.phoenix]\nurl = "https://phoenix.example"\n'
        '[otel]\nendpoint = "https://collector.example"\nheaders = { "x-key" = "s3cret" }\n'
    )
    report = settings_report(settings_with())["settings"]
    assert "s3cret" not in str(report)
    assert report["user_credentials"]["value"] == "page, secret_manager"
    assert report["deploy"]["value"] == "registries"
