"""Write a tree as a nested list, for phones and as text."""

from __future__ import annotations

from typing import Any

from trainer.tree.nodes import Node, Tree
from trainer.tree.render.palette import swatch

SHOWN_CLASSES = 6


def tree_outline(tree: Tree, node: int = 0) -> dict[str, Any]:
    """Return the subtree at `node`: rule or class, rows, class bar, and under `children` its answers yes and no."""
    v = tree.nodes[node]
    record: dict[str, Any] = {
        "id": v.id,
        "rows": v.rows,
        "bar": class_bar(tree, v),
        "counts": counts_text(tree, v),
        "children": [],
    }
    if v.split is None:
        share = v.counts[v.label] / v.rows if v.rows else None
        return record | {
            "label": tree.class_words[v.label],
            "colour": swatch(v.label, len(tree.classes)),
            "share": share,
        }
    record["rule"] = v.split.brief(tree.schema) + ("" if v.split.many else "?") + v.split.empty_note()
    record["children"] = [
        {"answer": "yes", "node": tree_outline(tree, v.left)},
        {"answer": "no", "node": tree_outline(tree, v.right)},
    ]
    return record


def class_bar(tree: Tree, node: Node) -> list[dict[str, Any]]:
    """Return the segments of a class bar: class, rows, start and share in percent, colour of `swatch`; empty classes are left out."""
    rows = max(1, node.rows)
    bar = []
    start = 0.0
    for k, (label, count) in enumerate(zip(tree.classes, node.counts, strict=True)):
        if count:
            percent = 100 * count / rows
            bar.append(
                {
                    "label": label,
                    "rows": count,
                    "start": round(start, 2),
                    "percent": round(percent, 2),
                    "colour": swatch(k, len(tree.classes)),
                }
            )
            start += percent
    return bar


def counts_text(tree: Tree, node: Node) -> str:
    """Write class counts: `357 benign · 212 malignant`; from four classes on, the two largest and how many more.

    If a class name begins like a number, the form is `0: 357 · 1: 212`, because `357 0` reads as one number.
    """
    pairs = list(zip(node.counts, tree.classes, strict=True))
    numbers = any(label[:1].isdigit() or label[:1] in "-+." for label in tree.classes)
    more = 0
    if len(pairs) > 3:
        pairs = sorted((p for p in pairs if p[0]), key=lambda p: -p[0])
        more = len(pairs) - 2
        pairs = pairs[:2]
    text = " · ".join(f"{label}: {count:,}" if numbers else f"{count:,} {label}" for count, label in pairs)
    return f"{text} + {more} more" if more > 0 else text
