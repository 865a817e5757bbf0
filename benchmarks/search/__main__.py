"""Prints the score of tool search, by vendor, and its CPU time.

``--misses`` lists the tuning tasks whose first result is not right. ``--document SOURCE=FILE``, any number of times,
takes the tools of an OpenAPI document (JSON) in place of the fixture's tools of that source.
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from toold.tools.search_fields import RankedTool
from toold.tools.tool_ranking import ToolIndex, rank

from .judged_set import JudgedTask, Score, api_tools, judged_tasks, judged_tools, positions, score

TARGET_TOP_1, TARGET_TOP_3 = 0.7, 0.9
"""The aims for the held-out tasks."""
_ROW: Final = "{:<12} {:>9} {:>7} {:>7}   {:>9} {:>7} {:>7}"


def main() -> None:
    """Measure and print."""
    arguments = _arguments()
    tools = judged_tools()
    for source, path in arguments.document:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        tools = [tool for tool in tools if tool.source != source] + list(api_tools(source, document))
    tasks = judged_tasks()
    places = positions(tools, tasks)
    print(f"{len(tasks)} tasks, {len(tools):,} tools\n")
    _print_scores(places)
    _print_speed(tools, tasks)
    if arguments.misses:
        _print_misses(places)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search")
    parser.add_argument("--misses", action="store_true", help="list the tuning tasks whose first result is not right")
    parser.add_argument(
        "--document", action="append", default=[], type=lambda text: text.split("=", 1), metavar="SOURCE=FILE"
    )
    return parser.parse_args()


def _print_scores(places: Mapping[JudgedTask, int | None]) -> None:
    print(_ROW.format("", "held out", "top 3", "top 1", "tuned on", "top 3", "top 1"))
    for vendor in (*dict.fromkeys(task.vendor for task in places), None):
        scores = [
            score(
                place
                for task, place in places.items()
                if task.held_out is held_out and (vendor is None or task.vendor == vendor)
            )
            for held_out in (True, False)
        ]
        print(_ROW.format(vendor or "all", *(cell for one in scores for cell in _cells(one))))
    held = score(place for task, place in places.items() if task.held_out)
    for what, reached, target in (("top 3", held.top_3, TARGET_TOP_3), ("top 1", held.top_1, TARGET_TOP_1)):
        print(f"target for held-out tasks, {what}: {target:.0%}, {'met' if reached >= target else 'missed'}")


def _cells(shown: Score) -> tuple[str, str, str]:
    return str(shown.tasks), f"{shown.top_3:.0%}", f"{shown.top_1:.0%}"


def _print_speed(tools: Sequence[RankedTool], tasks: Sequence[JudgedTask]) -> None:
    began = time.process_time()
    index = ToolIndex(tools)
    built = time.process_time() - began
    times: list[float] = []
    for task in tasks:
        began = time.process_time()
        rank(task.query, index)
        times.append(time.process_time() - began)
    times.sort()
    print(
        f"\nCPU time: {built * 1000:.0f} ms to build the index, in a thread; "
        f"{times[len(times) // 2] * 1000:.1f} ms per query (median), {times[-1] * 1000:.1f} ms at most"
    )


def _print_misses(places: Mapping[JudgedTask, int | None]) -> None:
    print()
    for task, place in places.items():
        if place != 1 and not task.held_out:
            print(f"{place or '-':>4}  {task.query}  ({', '.join(sorted(task.right))})")


if __name__ == "__main__":
    main()
