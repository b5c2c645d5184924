"""Tab Alternatives of a model page: the prices of other splits.

A workbench of the model computes what each split would cost at the chosen node.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

from django.db import transaction
from django.http import Http404

from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from octweb.registry.page.scene import ModelScene
from octweb.registry.page.tab import Tab
from octweb.workbench import actions, page
from octweb.workbench.models import StepKind, StepState, Workbench, countable
from trainer.tree.file import from_json
from trainer.tree.nodes import Tree


def ask(model: TreeModel, user: Any, node: int) -> None:
    """Request the prices at a node from the user's newest workbench of the model, or from a new one.

    Raises Http404 for an unknown node, and what `actions.open_for` and `actions.ask` raise.
    """
    tree = model_file(model).tree
    if not 0 <= node < len(tree.nodes):
        raise Http404(f"The tree has the nodes 0 to {len(tree.nodes) - 1}, and no node {node}.")
    place = actions.place_of(tree, node)
    with transaction.atomic():
        # the lock lets concurrent requests open only one workbench
        TreeModel.objects.select_for_update().get(pk=model.pk)
        bench = _bench(model, user.pk) or actions.open_for(owner=user, model=model)
        first = bench.steps.get(number=1)
        open_states = [StepState.WAITING, StepState.WORKING]
        open_steps = bench.steps.filter(kind=StepKind.PRICES, request__place=place, state__in=open_states)
        if any(step.wishes == first.wishes for step in open_steps):
            actions.wake_if_needed(bench)
        else:
            actions.ask(bench, StepKind.PRICES, wishes=first.wishes, request={"place": place})


def _counts(model: TreeModel) -> bool:
    return countable(model.dataset, model.method, model_file(model).parameters)


def _bench(model: TreeModel, owner: Any) -> Workbench | None:
    return Workbench.objects.kept().filter(base=model, owner_id=owner).order_by("created").last()


def _context(scene: ModelScene) -> dict[str, Any]:
    bench = _bench(scene.model, scene.user.pk)
    context = {"bench": bench, "prices": None, "working": False, "other": False, "counts": _counts(scene.model)}
    if bench is None:
        return context
    first = bench.steps.filter(number=1).first()
    prices = page.price_lines(bench, first, actions.place_of(scene.tree, scene.node.id))
    other = bool(first and first.document) and not _asks_same(first.document, scene.tree, scene.node.id)
    if prices and prices["working"] and actions.is_stalled(bench):
        prices = None  # the page then shows the button that continues the search
    working = bool(prices and prices["working"])
    failed = first is not None and first.state == StepState.FAILED
    return context | {"prices": None if other else prices, "working": working, "other": other, "failed": failed}


def _asks_same(document: str, tree: Tree, node: int) -> bool:
    """Return whether the workbench's tree and the model agree on the path to the node, in split columns and class counts."""
    own = from_json(json.loads(document)).tree
    a = 0
    path = tree.path_to(node)
    for b, below in itertools.pairwise(path):
        v = own.nodes[a]
        w = tree.nodes[b]
        if v.split is None or w.split is None or v.split.used != w.split.used or v.counts != w.counts:
            return False
        a = v.left if w.left == below else v.right
    return own.nodes[a].counts == tree.nodes[node].counts


TAB = Tab(
    id="alternatives",
    label="Alternatives",
    template="workbench/_alternatives.html",
    context=_context,
    shown=lambda scene: scene.can_be_searched,
)
