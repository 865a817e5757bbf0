"""Places the nodes and edges of a small directed graph, in columns from left to right. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

NODE_WIDTH: Final = 204
NODE_HEIGHT: Final = 60
_GAP_X, _GAP_Y, _MARGIN = 64, 22, 14
_RETURN_DEPTH: Final = 34
"""The distance below the nodes at which an edge leads back."""

EdgeKind = Literal["flow", "delegates", "repeats"]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One node. It gets the next free place in its column."""

    id: str
    column: int
    title: str
    lines: tuple[str, ...] = ()
    """Up to two lines below the title."""
    kind: str = "role"


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """One edge between two nodes."""

    source: str
    target: str
    kind: EdgeKind = "flow"
    label: str = ""


def layout(nodes: Sequence[GraphNode], edges: Sequence[GraphEdge]) -> dict[str, Any]:
    """Returns ``width``, ``height``, the ``nodes`` with their places, and the ``edges`` as paths of SVG."""
    columns: dict[int, list[GraphNode]] = {}
    for node in nodes:
        columns.setdefault(node.column, []).append(node)
    rows = max(map(len, columns.values()), default=1)
    height = 2 * _MARGIN + rows * NODE_HEIGHT + (rows - 1) * _GAP_Y
    repeats = any(edge.kind == "repeats" for edge in edges)
    places: dict[str, tuple[float, float]] = {}
    for place, column in enumerate(sorted(columns)):
        members = columns[column]
        used = len(members) * NODE_HEIGHT + (len(members) - 1) * _GAP_Y
        top = (height - used) / 2
        for row, node in enumerate(members):
            x = _MARGIN + place * (NODE_WIDTH + _GAP_X)
            places[node.id] = (x, top + row * (NODE_HEIGHT + _GAP_Y))
    width = 2 * _MARGIN + len(columns) * NODE_WIDTH + max(0, len(columns) - 1) * _GAP_X
    return {
        "width": width,
        "height": height + (2 * _RETURN_DEPTH if repeats else 0),
        "nodes": [_placed(node, *places[node.id]) for node in nodes],
        "edges": [_path(edge, places, height) for edge in edges],
    }


def _placed(node: GraphNode, x: float, y: float) -> dict[str, Any]:
    return {
        "x": x,
        "y": y,
        "middle": x + NODE_WIDTH / 2,
        "width": NODE_WIDTH,
        "height": NODE_HEIGHT,
        "title": node.title,
        "lines": node.lines,
        "kind": node.kind,
    }


def _path(edge: GraphEdge, places: dict[str, tuple[float, float]], bottom: float) -> dict[str, Any]:
    (x1, y1), (x2, y2) = places[edge.source], places[edge.target]
    if edge.kind == "repeats":
        start, end, low = x1 + NODE_WIDTH / 2, x2 + NODE_WIDTH / 2, bottom + _RETURN_DEPTH
        path = f"M{start:g} {y1 + NODE_HEIGHT:g}C{start:g} {low:g} {end:g} {low:g} {end:g} {y2 + NODE_HEIGHT:g}"
        return {
            "path": path,
            "kind": edge.kind,
            "label": edge.label,
            "x": (start + end) / 2,
            "y": bottom + _RETURN_DEPTH,
        }
    if x1 == x2:  # one below the other
        x = x1 + NODE_WIDTH / 2
        path = f"M{x:g} {y1 + NODE_HEIGHT:g}L{x:g} {y2:g}"
        return {"path": path, "kind": edge.kind, "label": edge.label, "x": x, "y": (y1 + y2 + NODE_HEIGHT) / 2}
    start, begin = x1 + NODE_WIDTH, y1 + NODE_HEIGHT / 2
    end = y2 + NODE_HEIGHT / 2
    bend = (x2 - start) / 2
    path = f"M{start:g} {begin:g}C{start + bend:g} {begin:g} {x2 - bend:g} {end:g} {x2:g} {end:g}"
    return {"path": path, "kind": edge.kind, "label": edge.label, "x": start + bend, "y": (begin + end) / 2 - 6}
