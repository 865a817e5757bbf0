"""The built scripts and styles of the dashboard."""

import subprocess
import sys
from pathlib import Path

import pytest
from toold.dashboard import AssetError, load_assets

ROOT = Path(__file__).parents[2]
FIRST_VIEW_BYTES = 150_000
"""What the first page may transfer, as docs/dashboard.md promises by its size."""


@pytest.mark.process
def test_assets_are_up_to_date(starts_processes: None, tmp_path: Path) -> None:
    """``make ui`` would change nothing."""
    if not (ROOT / ".venv/.ui").exists():
        pytest.skip("the packages of the dashboard are not installed; `make ui` installs them")
    subprocess.run([sys.executable, "scripts/build_ui.py", str(tmp_path)], cwd=ROOT, check=True)
    built = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert built == {path.name: path.read_bytes() for path in (ROOT / "src/dashboard/assets").iterdir()}


def test_the_first_view_is_small() -> None:
    """The compressed assets leave most of 150 KB to the page."""
    assets = load_assets()
    names = [assets.url_name(name) for name in ("app.js", "app.css", "icon.svg")]
    sizes = [len(asset.compressed) for name in names if (asset := assets.find(name)) is not None]
    assert len(sizes) == 3
    assert sum(sizes) < FIRST_VIEW_BYTES / 2


def test_missing_assets_are_said(tmp_path: Path) -> None:
    """Without built assets the error names the directory and the target that builds them."""
    with pytest.raises(AssetError, match="make ui"):
        load_assets(tmp_path)
