"""The doctor looks at the operator's own tools."""

from pathlib import Path

from toold.daemon.setting_sources import load_settings
from toold.daemon.settings import Settings
from toold.daemon.tool_checks import files


def settings(folder: Path, **env: str) -> Settings:
    return load_settings({}, env={"TOOLD_STATE_DIR": str(folder / "state"), **env}, cwd=folder)


def test_without_folders_there_is_nothing_to_look_at(tmp_path: Path) -> None:
    """No line is made of it."""
    assert files(settings(tmp_path)) == []


def test_each_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """With what is wrong; a folder whose files are right says how many tools there are."""
    flows, pipelines = tmp_path / "flows", tmp_path / "pipelines"
    flows.mkdir()
    pipelines.mkdir()
    (pipelines / "bad.yaml").write_text("steps: []\n")
    (pipelines / "good.toml").write_text('description = "Echo."\n[[steps]]\nid = "a"\ntool_name = "echo"\n')
    found = files(settings(tmp_path, TOOLD_WORKFLOW_DIR=str(flows), TOOLD_PIPELINE_DIR=str(pipelines)))
    assert [(check.name, check.status) for check in found] == [("workflow_dir", "ok"), ("pipeline_dir", "warn")]
    assert "bad.yaml was left out: " in found[1].message
    (pipelines / "bad.yaml").unlink()
    (check,) = files(settings(tmp_path, TOOLD_PIPELINE_DIR=str(pipelines)))
    assert check.message == f"{pipelines} has good"
