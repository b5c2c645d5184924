"""Compute the inspector with its tabs (TABS).

The visible tabs have the keys 1, 2, 3, … in the order of TABS.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.module_loading import import_string

from octweb.figures.split import split_figures
from octweb.registry.document.claims import claim_of
from octweb.registry.page import node, rowsets, thresholds
from octweb.registry.page.scene import ModelScene
from octweb.registry.page.smaller_tree import smaller_model
from octweb.registry.page.tab import Tab, added_tabs
from trainer.certificate import Guarantee
from trainer.tree.idle import idle_questions
from trainer.tree.numbers import decimal_text

AT_FIRST = 10  # leaves that the list shows at first; it shows all if there are at most two more
# with more training rows, titles and notes of pictures are not computed with the page
MAX_DESCRIBED_ROWS = 20_000


def _question(scene: ModelScene) -> dict[str, Any]:
    return {
        "pictures": _pictures(scene),
        "sides": node.sides(scene),
        "terms": node.terms(scene),
        "single": node.best_single(scene),
        "moving": thresholds.threshold_slider(scene),
        "legend": thresholds.legend(scene),
    }


def _pictures(scene: ModelScene) -> list[dict[str, Any]]:
    """Return URLs, titles and notes of the split's pictures. [] for a leaf and without rows."""
    if scene.rows is None or scene.node.is_leaf:
        return []
    url = reverse("api-model-node-figure", args=[scene.model.pk, scene.node.id])
    training = scene.part("training")
    if len(training) > MAX_DESCRIBED_ROWS:
        return [{"url": f"{url}?picture=0", "title": "", "note": "", "warning": ""}]
    figures = split_figures(scene.tree, scene.node.id, scene.rows.matrix[training], scene.rows.codes[training])
    words = ("title", "note", "warning")
    return [
        {"url": f"{url}?picture={i}", "declare": _declare(scene, p)} | {w: p.get(w, "") for w in words}
        for i, p in enumerate(figures)
    ]


def _declare(scene: ModelScene, picture: dict[str, Any]) -> str:
    """Return the URL of the form that declares the codes in this warning. "" if there are none."""
    undeclared = picture.get("undeclared")
    if not undeclared or not undeclared["codes"] or scene.model.dataset is None:
        return ""
    query = {"column": undeclared["column"], "codes": ", ".join(decimal_text(v) for v in undeclared["codes"])}
    return f"{reverse('datasets:edit', args=[scene.model.dataset_id])}?{urlencode(query)}"


def _answer(scene: ModelScene) -> dict[str, Any]:
    return {
        "answer": node.answer_facts(scene),
        "path": node.path_rules(scene, scene.node.id),
    }


def _rows(scene: ModelScene) -> dict[str, Any]:
    query = rowsets.row_query(scene, {**scene.query, "node": str(scene.node.id)})
    return {"table": rowsets.table(scene, query)}


def _below(scene: ModelScene) -> dict[str, Any]:
    leaves = node.leaves_under(scene)
    first = len(leaves) if len(leaves) <= AT_FIRST + 2 else AT_FIRST
    return {
        "part": scene.node.id > 0 and len(leaves) > 2,
        "leaves": leaves[:first],
        "further": leaves[first:],
        "idle": node.idle_at(scene),
        "idle_in_all": len(idle_questions(scene.tree)),
        "prunable": scene.can_change and scene.model.guarantee != Guarantee.TREE,
        "small": sum(leaf["rows"] < 30 for leaf in leaves),
        "smaller": smaller_model(scene),
    }


def _proof(scene: ModelScene) -> dict[str, Any]:
    return {
        "certificate": scene.file.certificate,
        "claim": claim_of(scene.model),
        "proved_split": scene.node.split_proved,
        "wrong": scene.tree.nodes[0].rows - sum(leaf.counts[leaf.label] for leaf in scene.tree.leaves),
    }


TABS: list[Tab] = [  # other apps may add tabs with `tab.register_tab`
    Tab(
        id="question",
        label="Question",
        template="registry/inspector/_question.html",
        context=_question,
        shown=lambda scene: not scene.node.is_leaf,
    ),
    Tab(
        id="answer",
        label="Answer",
        template="registry/inspector/_answer.html",
        context=_answer,
        shown=lambda scene: scene.node.is_leaf,
    ),
    Tab(
        id="rows",
        label="Rows",
        template="registry/inspector/_rows.html",
        context=_rows,
        shown=lambda scene: scene.rows is not None,
    ),
    Tab(
        id="below",
        label="Below",
        template="registry/inspector/_below.html",
        context=_below,
        shown=lambda scene: not scene.node.is_leaf,
        count=lambda scene: len(node.leaves_under(scene)),
    ),
    *(import_string(name) for name in added_tabs),
    Tab(id="proof", label="Proof", template="registry/inspector/_proof.html", context=_proof),
]


def inspector(scene: ModelScene) -> dict[str, Any]:
    """Return the context of the inspector with the requested tab.

    The default is the question or, for a leaf, its rows.
    """
    visible = [tab for tab in TABS if tab.shown(scene)]
    tab_id = scene.query.get("tab", "")
    if scene.node.is_leaf and tab_id in ("", "question"):
        tab_id = "rows" if scene.rows is not None else "answer"
    current = next((tab for tab in visible if tab.id == tab_id), visible[0])
    return {
        "model": scene.model,
        "node": node.node_facts(scene),
        "tabs": [
            {"id": t.id, "label": t.label, "here": t is current, "count": t.count(scene), "key": n}
            for n, t in enumerate(visible, 1)
        ],
        "tab": current,
        "inside": scene.inside,
        "editable": scene.can_change and scene.can_be_searched,
        # without rows, unseen rows are unknown rather than none, so the page does not mention them
        "has_rows": scene.rows is not None,
        "classes": len(scene.tree.classes),
        **current.context(scene),
    }
