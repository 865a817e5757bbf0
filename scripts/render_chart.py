"""``render_chart.py``: lints the Helm chart and renders it for its tests, with the program ``helm`` (``make chart``).

The tests read the rendered files, so that they need no ``helm``. The first line of each file has a digest of the chart
and the values, by which the tests find out that it is out of date.
"""

import hashlib
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "docker/helm/toold"
VALUES = ROOT / "tests/docker/chart"


def digest(values: Path) -> str:
    """Returns the SHA-256 of the chart's files and of one file of values, as hexadecimal digits."""
    found = hashlib.sha256()
    for path in [*sorted(CHART.rglob("*")), values]:
        if path.is_file():
            name = path.relative_to(CHART).as_posix() if path.is_relative_to(CHART) else path.name
            content = path.read_bytes()
            found.update(f"{name} {len(content)}\n".encode() + content)
    return found.hexdigest()


def rendered_file(values: Path) -> Path:
    """Returns where the manifests of these values are."""
    return values.with_name(values.name.replace(".values.", ".rendered."))


def main() -> None:
    """Lint and render the chart with each file of values.

    Raises:
        subprocess.CalledProcessError: the chart is wrong; helm has said why.
    """
    for values in sorted(VALUES.glob("*.values.yaml")):
        lint: list[str | Path] = ["helm", "lint", CHART, "--strict", "--values", values]
        subprocess.run(lint, check=True)  # noqa: S603 - ours
        command: list[str | Path] = ["helm", "template", "tools", CHART, "--namespace", "tools", "--values", values]
        manifests = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 - ours
        rendered_file(values).write_text(f"# chart: {digest(values)}\n{manifests}", "utf-8")


if __name__ == "__main__":
    main()
