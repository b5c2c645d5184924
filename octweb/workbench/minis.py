"""Draw small pictures (180 by 84 units) of listed trees."""

from __future__ import annotations

from typing import Any

from trainer.tree.render.palette import swatch

WIDTH = 180.0
TOP = 8.0
BOTTOM = 72.0
LEAF = 12.0
# Widths of the line to a branch with few rows, and to one with all rows.
THIN = 1.0
THICK = 9.0


def picture(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the lines (path, width), dots (x, y) and leaves (x, y, swatch) of a tree that is given as a list of nodes."""
    depths = _depths(nodes)
    xs = _columns(nodes)
    deepest = max(depths.values())
    ys = {v: TOP + (BOTTOM - TOP) * d / max(1, deepest) for v, d in depths.items()}
    total = max(1, sum(nodes[0]["counts"]))
    lines = []
    dots = []
    leaves = []
    for v in depths:
        counts = nodes[v]["counts"]
        if "split" not in nodes[v]:
            leaves.append((_n(xs[v] - LEAF / 2), _n(ys[v] - LEAF / 2), swatch(_label(counts), len(counts))))
            continue
        dots.append((_n(xs[v]), _n(ys[v])))
        for below in (nodes[v]["left"], nodes[v]["right"]):
            middle = (ys[v] + ys[below]) / 2
            path = f"M{xs[v]:.1f} {ys[v]:.1f}C{xs[v]:.1f} {middle:.1f} {xs[below]:.1f} {middle:.1f} {xs[below]:.1f} {ys[below]:.1f}"
            lines.append((path, _n(THIN + (THICK - THIN) * sum(nodes[below]["counts"]) / total)))
    return {"lines": lines, "dots": dots, "leaves": leaves}


def legend(trees: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the colour and the name of each class that is the answer of a leaf, in the order of the classes."""
    swatches = {}
    for tree in trees:
        for node in tree["nodes"]:
            if "split" not in node:
                swatches[_label(node["counts"])] = (swatch(_label(node["counts"]), len(node["counts"])), node["class"])
    return [look for _, look in sorted(swatches.items())]


def _label(counts: list[int]) -> int:
    """Return the majority class. Among equals it is the first one."""
    return max(range(len(counts)), key=counts.__getitem__)


def _depths(nodes: list[dict[str, Any]]) -> dict[int, int]:
    """Return the level of each node."""
    depths = {0: 0}
    waiting = [0]
    for v in waiting:
        if "split" in nodes[v]:
            for below in (nodes[v]["left"], nodes[v]["right"]):
                depths[below] = depths[v] + 1
                waiting.append(below)
    return depths


def _columns(nodes: list[dict[str, Any]]) -> dict[int, float]:
    """Return the x coordinate of each node.

    Leaves have equal distances, and each split is in the middle above its children.
    """
    xs: dict[int, float] = {}
    number = sum("split" not in node for node in nodes)
    placed = 0

    def visit(v: int) -> float:
        nonlocal placed
        if "split" in nodes[v]:
            xs[v] = (visit(nodes[v]["left"]) + visit(nodes[v]["right"])) / 2
        else:
            xs[v] = WIDTH * (placed + 0.5) / number
            placed += 1
        return xs[v]

    visit(0)
    return xs


def _n(value: float) -> str:
    """Format a number for SVG, with a point in every language."""
    return f"{value:.1f}"
