"""The A/A trials: false alarms, how many are too many, and detected changes."""

from collections import Counter
from collections.abc import Callable

from baseline.record import Call, Record
from baseline.runs_by_turns import Runs, compare_by_turns
from baseline.trials import EXIT_MANY, Plan, Tally, alarms, exit_code, outcome, with_slower

MakeRecord = Callable[..., Record]
PLAN = Plan(comparisons=50, pairs=6, iterations=6, tools=("a", "b"))


def pairs(make_record: MakeRecord, make_call: Callable[..., Call], slower: float) -> list[Runs]:
    """Six pairs of runs of the tools ``a`` and ``b``; ``b`` is slower in the later runs."""

    def run(factor: float) -> Record:
        made = [("a", 1.0, n) for n in range(6)] + [("b", factor, n) for n in range(6)]
        return make_record([make_call(tool_name=t, latency_ms=f * (10 + n), iteration=n + 1) for t, f, n in made])

    return [(run(1.0), run(slower)) for _ in range(6)]


def test_unexpected_change_is_an_alarm(make_record: MakeRecord, make_call: Callable[..., Call]) -> None:
    """A tool that is reported slower is an alarm, unless it was slowed on purpose. An unchanged tool is not an
    alarm.
    """
    comparison = compare_by_turns(pairs(make_record, make_call, 2.0))
    (alarm,) = alarms(comparison)
    assert (alarm.tool, alarm.verdict, round(alarm.ratio)) == ("b", "slower", 2)
    assert alarms(comparison, ["b"]) == []


def test_latencies_are_multiplied_for_one_tool(make_record: MakeRecord, make_call: Callable[..., Call]) -> None:
    """``with_slower`` multiplies the latencies of one tool, which is then found."""
    scaled = [(old, with_slower(new, "a", 2.0)) for old, new in pairs(make_record, make_call, 1.0)]
    assert {row.tool_name: row.verdict for row in compare_by_turns(scaled).rows} == {"a": "slower", "b": "same"}


def test_few_alarms_are_expected_by_chance() -> None:
    """With an alarm in one of twenty comparisons, five of fifty are expected by chance; six are too many."""
    assert exit_code(Tally(comparisons=50, alarmed=5)) == 0
    assert exit_code(Tally(comparisons=50, alarmed=6)) == EXIT_MANY
    assert exit_code(Tally()) == 0


def test_outcome_of_identical_daemons() -> None:
    """The outcome has the false alarms with their interval, the verdicts, and the changes that would be found."""
    tally = Tally(comparisons=50, alarmed=1, verdicts=Counter({"same": 99, "slower": 1}))
    tally.tools, tally.scaled = 100, Counter({1.2: 40, 1.5: 90, 2.0: 100})
    assert outcome(PLAN, tally).splitlines() == [
        "1 of 50 comparisons had a false alarm (95 %: 0% to 10%; promised: 5%). Of 100 tools: 99 same, 1 slower.",
        "With one tool's later latencies multiplied by 1.2, it was called slower in 40 of 100.",
        "With one tool's later latencies multiplied by 1.5, it was called slower in 90 of 100.",
        "With one tool's later latencies multiplied by 2, it was called slower in 100 of 100.",
    ]


def test_outcome_of_a_slowed_daemon() -> None:
    """The outcome says how often the slowed tools were found."""
    plan = Plan(comparisons=10, pairs=6, iterations=6, tools=("echo", "chat"), slower=1.2)
    said = outcome(plan, Tally(comparisons=10, found=Counter({"echo": 10, "chat": 9})))
    assert "Really slower by 20%, and found, of 10: echo in 10, chat in 9." in said
