"""The question for a daily budget at the first start."""

import tomllib
from pathlib import Path

import click
from click.testing import CliRunner
from toold.cli.budget_question import ask_budget, needs_budget_question
from toold.daemon import load_settings


def test_it_is_asked_once_and_only_of_a_person_who_will_pay(tmp_path: Path) -> None:
    """Not without a terminal, not if simulated or limited, and not after the first start."""
    state = tmp_path / "state"
    state.mkdir()
    env = {"TOOLD_STATE_DIR": str(state), "KIMI_API_KEY": "key"}

    def asks(*, terminal: bool = True, **more: str) -> bool:
        return needs_budget_question(load_settings({}, env=env | more, cwd=tmp_path), terminal=terminal)

    assert asks()
    assert not asks(terminal=False)
    assert not asks(TOOLD_SIMULATE="true")
    assert not asks(TOOLD_DAILY_BUDGET="5 USD")
    (state / "toold.db").touch()
    assert not asks()


def test_the_answer_is_written_to_the_settings(tmp_path: Path) -> None:
    """A wrong answer is asked for again, with what is allowed; an empty one changes nothing."""
    place = tmp_path / "toold.toml"
    command = click.command()(lambda: click.echo(str(ask_budget(place))))
    assert CliRunner().invoke(command, input="\n").output.endswith("False\n")
    assert not place.exists()
    result = CliRunner().invoke(command, input="much\n5 USD, 30 cny\n")
    assert "must be amounts such as 5 USD" in result.output
    assert result.output.endswith("True\n")
    assert tomllib.loads(place.read_text())["daily_budget"] == ["5 USD", "30 CNY"]
