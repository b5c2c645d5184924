"""Write a tree as self-contained HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from trainer.tree.describe import rules_text
from trainer.tree.nodes import Tree
from trainer.tree.render.palette import FONT, MAX_CLASSES
from trainer.tree.render.paper import colour, svg_of
from trainer.tree.render.tokens import LIGHT

ROOM = (1100.0, 1400.0)  # size in pixels that a picture may take in a notebook


def tree_html(tree: Tree, lines: Sequence[str] = ()) -> str:
    """Return the picture of the tree with `lines` of text above it, a legend, and the rules as text to unfold.

    A card shows its whole rule and its rows under the pointer. Background and ink are the light theme's in every
    notebook, so that the classes keep their colours.
    """
    svg, hidden = svg_of(tree, ROOM)
    head = "".join(f"<div>{escape(line)}</div>" for line in lines)
    more = (
        f"<div>{hidden} nodes of closed branches are not drawn; the rules below have them all.</div>" if hidden else ""
    )
    style = f"background:{LIGHT['card']};color:{LIGHT['ink']};font:13px/1.5 {FONT};padding:12px;overflow-x:auto"
    return (
        f'<div class="octweb-tree" style="{escape(style)}">{head}<div>{_legend(tree)}</div>{svg}{more}'
        f'<details><summary>Rules as text</summary><pre style="background:none;color:inherit">{escape(rules_text(tree))}</pre></details></div>'
    )


def _legend(tree: Tree) -> str:
    """Return the name of each class beside its colour; above 20 classes the last ones share a colour."""
    size = len(tree.classes)
    n_coloured = len(tree.classes) if len(tree.classes) <= MAX_CLASSES else MAX_CLASSES - 1
    entries = [(colour(k, size), name) for k, name in enumerate(tree.classes[:n_coloured])]
    if n_coloured < size:
        entries.append((colour(n_coloured, size), f"Other ({size - n_coloured} classes)"))
    return " ".join(
        f'<span style="white-space:nowrap;margin-right:12px"><span style="display:inline-block;width:10px;height:10px;border-radius:2px;'
        f'background:{fill};margin-right:5px"></span>{escape(name)}</span>'
        for fill, name in entries
    )
