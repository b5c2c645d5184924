"""Draw a thumbnail of a large tree for a corner of the page."""

from __future__ import annotations

from typing import Any

from trainer.tree.nodes import Tree
from trainer.tree.render.palette import class_styles, distinct_styles, escape, frame

WIDTH = 280
HEIGHT = 116
EDGE = 8
THICK_EDGE_SHARE = 0.1  # share of the rows; edges with more rows are thicker


def tree_map(tree: Tree) -> dict[str, Any]:
    """Return Plotly JSON of edges and leaves. Leaves have the colours of their classes.

    `layout.meta.nodes` has the position of every node in pixels, so the page can mark the visible ones.
    """
    x, y = _places(tree)
    data = [_edges(tree, x, y, thick=False), _edges(tree, x, y, thick=True)]
    side = max(2.0, min(6.0, 0.7 * WIDTH / max(1, tree.n_leaves)))
    for style, codes in distinct_styles(class_styles(tree.classes)):
        leaves = [v.id for v in tree.leaves if v.label in codes]
        if leaves:
            data.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": escape(style.name),
                    "x": [x[i] for i in leaves],
                    "y": [y[i] for i in leaves],
                    "marker": {"symbol": "square", "size": side, "color": style.colour},
                    "hoverinfo": "skip",
                }
            )
    layout = frame(
        width=WIDTH,
        height=HEIGHT,
        margin={"l": 0, "r": 0, "t": 0, "b": 0},
        xaxis={"range": [0, WIDTH], "fixedrange": True, "visible": False},
        yaxis={"range": [HEIGHT, 0], "fixedrange": True, "visible": False},
        hovermode=False,
        dragmode=False,
        meta={"kind": "map", "nodes": [{"id": v.id, "x": x[v.id], "y": y[v.id]} for v in tree.nodes]},
    )
    return {"data": [trace for trace in data if trace], "layout": layout}


def _places(tree: Tree) -> tuple[list[float], list[float]]:
    """Return x and y of every node: leaves evenly spaced, branches centred above their children, y by depth."""
    level = [0] * len(tree.nodes)
    for v in tree.branches:
        level[v.left] = level[v.right] = level[v.id] + 1
    x = [0.0] * len(tree.nodes)
    order = 0
    waiting = [0]
    while waiting:
        v = tree.nodes[waiting.pop()]
        if v.is_leaf:
            x[v.id] = EDGE + (WIDTH - 2 * EDGE) * (order + 0.5) / tree.n_leaves
            order += 1
        else:
            waiting += [v.right, v.left]
    for v in reversed(tree.branches):
        x[v.id] = (x[v.left] + x[v.right]) / 2
    step = (HEIGHT - 2 * EDGE) / max(1, tree.depth)
    return [round(at, 1) for at in x], [round(EDGE + step * at, 1) for at in level]


def _edges(tree: Tree, x: list[float], y: list[float], *, thick: bool) -> dict[str, Any]:
    total = max(1, tree.nodes[0].rows)
    xs: list[float | None] = []
    ys: list[float | None] = []
    for v in tree.branches:
        for child in (v.left, v.right):
            if (tree.nodes[child].rows / total > THICK_EDGE_SHARE) == thick:
                xs += [x[v.id], x[child], None]
                ys += [y[v.id], y[child], None]
    line = {"color": "var(--line-strong)", "width": 2.5 if thick else 1}
    trace = {"type": "scatter", "mode": "lines", "name": "edges", "x": xs, "y": ys, "line": line, "hoverinfo": "skip"}
    return trace if xs else {}
