"""Draw the edited tree with a link for each node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from octweb.workbench.models import Step
from octweb.workbench.page import PageNode, model_of
from trainer.tree.render.figure import tree_figure

MOST_LEAVES = 40  # a larger tree is shown as text
ROOM = (860.0, 470.0)  # pixels; a larger picture is scaled down to this canvas


@dataclass(frozen=True)
class Card:
    """Card of the picture: its rectangle in pixels, and the node that it represents."""

    place: PageNode
    label: str
    left: float
    top: float
    width: float
    height: float


def canvas(step: Step, tree: PageNode) -> dict[str, Any] | None:
    """Return the figure, its size and its cards, parents first, or None for a tree with too many leaves."""
    model = model_of(step)
    if model.tree.n_leaves > MOST_LEAVES:
        return None
    places = dict(_by_node(model.tree, tree))
    chosen_node = next((node for node, place in places.items() if place.chosen), None)
    figure = tree_figure(model.tree, closed=(), room=ROOM, chosen=chosen_node)
    layout = figure["layout"]
    cards = [Card(places[v["id"]], _label(places[v["id"]], v["label"]), *v["box"]) for v in layout["meta"]["nodes"]]
    return {"figure": figure, "width": layout["width"], "height": layout["height"], "cards": cards}


def _label(place: PageNode, label: str) -> str:
    """Return the text of a card for screen readers, with the constraints at its place."""
    return f"{label}, wishes: {', '.join(place.tags)}" if place.tags else label


def _by_node(tree: Any, top: PageNode) -> list[tuple[int, PageNode]]:
    """Return each node of the tree with its place."""
    pairs = []
    left = [(0, top)]
    while left:
        node, place = left.pop()
        pairs.append((node, place))
        if place.yes is not None and place.no is not None:
            left += [(tree.nodes[node].left, place.yes), (tree.nodes[node].right, place.no)]
    return pairs
