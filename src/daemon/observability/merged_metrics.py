"""Joins the metrics pages of several nodes into one. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

_SAMPLE: Final = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})? (.+)")
"""A line of the text format: name, labels, value."""


def merged_metrics(pages: Mapping[str, str], unanswered: Iterable[str] = ()) -> str:
    """Returns the samples of all pages, by node, in the Prometheus text format, each with the label ``node``.

    ``toold_node_answered`` is 1 for each node with a page, and 0 for each node that has not answered.
    """
    comments: dict[str, list[str]] = {"toold_node_answered": ["# TYPE toold_node_answered gauge"]}
    samples: dict[str, list[str]] = {
        "toold_node_answered": [
            f"toold_node_answered{{{_label(node)}}} {answered}"
            for answered, nodes in ((1, pages), (0, unanswered))
            for node in nodes
        ]
    }
    for node, page in pages.items():
        family = ""
        for line in page.splitlines():
            if line.startswith("#"):
                family = (line.split(" ", 3) + [""] * 3)[2]
                if line not in comments.setdefault(family, []):
                    comments[family].append(line)
            elif (sample := _SAMPLE.fullmatch(line)) is not None:
                name, labels, value = sample.groups()
                joined = ",".join(part for part in (_label(node), labels) if part)
                samples.setdefault(family, []).append(f"{name}{{{joined}}} {value}")
    return "".join(f"{line}\n" for family in comments for line in (*comments[family], *samples.get(family, ())))


def _label(node: str) -> str:
    escaped = node.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'node="{escaped}"'
