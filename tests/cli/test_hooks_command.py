"""``toold hooks``: examples, and questions to a hook."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from toold.cli.hooks_command import EXAMPLES

if TYPE_CHECKING:
    from tests.cli.conftest import Run


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_printed(run: "Run", name: str) -> None:
    """As Python programs."""
    printed = run("hooks", "example", name)
    assert printed.exit_code == 0
    compile(printed.output, name, "exec")


@pytest.mark.process
def test_asking_a_hook(run: "Run", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would happen to a call, or to its result, and why a hook gave no answer."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "redact.py").write_text(run("hooks", "example", "redact_personal_data").output)
    (tmp_path / "rules.py").write_text(run("hooks", "example", "refuse_by_rule").output)
    (tmp_path / "rules.json").write_text(
        '[{"tool": "sql", "argument": "limit", "refuse_if": "[0-9]{4,}", "words": "At most 999."}]'
    )
    (tmp_path / "toold.toml").write_text(
        f'[hooks.redact]\ncommand = ["{sys.executable}", "redact.py"]\n'
        f'[hooks.rules]\ncommand = ["{sys.executable}", "rules.py", "rules.json"]\nevents = ["before"]\n'
        '[hooks.broken]\ncommand = ["/no/such/program"]\n'
    )
    config = ["--config", "toold.toml"]
    assert run("hooks", "ask", *config, "redact", "mail", "text=hi").output == "Allowed.\n"
    changed = run("hooks", "ask", *config, "redact", "mail", "to=ann@x.example")
    assert (changed.exit_code, changed.output) == (0, 'Allowed, with {"to": "[email]"}\n')
    result = run("hooks", "ask", *config, "redact", "mail", "--result", "from ann@x.example")
    assert result.output == "Allowed, with the result:\nfrom [email]\n"
    refused = run("hooks", "ask", *config, "rules", "sql", "limit:=1000")
    assert (refused.exit_code, refused.output) == (1, "The hook rules refuses the call: At most 999.\n")
    assert "is not asked after calls" in run("hooks", "ask", *config, "rules", "sql", "--result", "x").output
    broken = run("hooks", "ask", *config, "broken", "sql")
    assert broken.exit_code == 1
    assert "hook broken: its program cannot be started: No such file or directory" in broken.output
    assert "did you mean 'redact'" in run("hooks", "ask", *config, "redct", "x").output
