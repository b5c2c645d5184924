"""Compute the model page in each of its modes (MODES).

Other apps add modes with `mode.register_mode`.
"""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from octweb.registry.document.claims import claim_badges, claim_of
from octweb.registry.document.rows import absence_words, check_claim, example_row
from octweb.registry.document.selection import selection_of
from octweb.registry.document.sensitivity_frontier import frontier_context
from octweb.registry.lifecycle import actions
from octweb.registry.lifecycle.access import may_call
from octweb.registry.page import content, costs, groups, performance, rowsets, snippets, versions
from octweb.registry.page.downloads import FORMATS
from octweb.registry.page.mode import Mode, added_modes
from octweb.registry.page.scene import ModelScene
from octweb.registry.page.tabs import inspector
from octweb.registry.page.try_row import follow, try_context
from trainer.convert.source import METHOD
from trainer.evaluate.verdict import training_base_words
from trainer.training.claims import goal_sentence, goal_words, plain_scope, price_sentence
from trainer.training.unseen import unseen_words
from trainer.tree.render.names import LEGEND_LENGTH, short_names
from trainer.tree.render.outline import tree_outline
from trainer.tree.render.palette import swatch

MAX_LISTED_FILES = 10  # maximum number of files that the mode "Use" lists
# the map is shown from this number of leaves on; a full tree of depth 4 has one less, and larger trees may begin
# collapsed
MAP_FROM = 17
OUTLINE_TO = 300  # a tree of at most this many nodes is also shown as a list


def _tree(scene: ModelScene) -> dict[str, Any]:
    tree = scene.tree
    walk, trouble, followed = follow(scene)
    cell = None if walk else rowsets.cell_of(scene)
    marked_leaves = [walk.leaf] if walk else []
    if cell:
        marked_leaves = [end["leaf"] for end in cell["ends"]]
    counts = tree.nodes[0].counts
    return {
        "figure_url": reverse("api-model-tree-figure", args=[scene.model.pk]),
        "map_url": reverse("api-model-tree-map", args=[scene.model.pk]) if tree.n_leaves >= MAP_FROM else "",
        "outline": tree_outline(tree) if len(tree.nodes) <= OUTLINE_TO else None,
        "rules": content.rules(scene.model),
        "legend": [
            {
                "label": label,
                "full": full,
                "look": swatch(k, len(tree.classes)),
                "share": counts[k] / max(1, sum(counts)),
            }
            for k, (full, label) in enumerate(zip(tree.classes, short_names(tree.classes, LEGEND_LENGTH), strict=True))
        ],
        "levels": tree.depth,
        "walk": walk,
        "cell": cell,
        "lit": marked_leaves,
        "trouble": trouble,
        "follow": followed,
        "called": rowsets.line_word(scene),
        "has_rows": scene.rows is not None,
        "inspector": inspector(scene),
        **_row_counts(scene),
    }


def _row_counts(scene: ModelScene) -> dict[str, int]:
    """Return the numbers of training and held-out rows, counted on the rows or else from the model file."""
    metrics = scene.file.metrics
    claimed = [int((metrics.get(name) or {}).get("n") or 0) for name in ("train", "test")]
    training = len(scene.part("training")) or claimed[0] or sum(scene.tree.nodes[0].counts)
    return {"training": training, "unseen_rows": len(scene.part("unseen")) or claimed[1]}


def _performance(scene: ModelScene) -> dict[str, Any]:
    part = performance.chosen_part(scene)
    positive = performance.positive_class(scene)
    columns = groups.columns_of(scene)
    asked = [column["name"] for column in columns if column["asked"]] or [column["name"] for column in columns]
    group_column = scene.query.get("group", "") or next(iter(asked), "")
    row_part = part if part in scene.parts else ""
    return {
        "parts": performance.parts_of(scene),
        "part": part,
        "mistakes": performance.mistakes(scene, part),
        "calibration": performance.calibration(scene) if part == "unseen" else [],
        "quality": performance.quality(scene, part, positive) if part != performance.FOLDS else None,
        "cheapest": performance.cheapest_cut(scene, part, positive) if part in scene.parts else None,
        "costs": costs.cost_context(scene, part),
        "money": performance.money(scene),
        "goal": performance.goal_of(scene, part),
        "price_sentence": price_sentence(scene.file.certificate),
        "positive": positive,
        "looked_for": scene.tree.classes[positive],
        "classes": scene.tree.classes,
        "two": len(scene.tree.classes) == 2,
        "has_rows": scene.rows is not None,
        "columns": columns,
        "groups": groups.groups(scene, group_column, row_part) if columns and row_part else None,
        "unseen_interval": performance.unseen_interval(scene),
    }


def _proof(scene: ModelScene) -> dict[str, Any]:
    model = scene.model
    certificate = scene.file.certificate
    return {
        "certificate": certificate,
        **_row_counts(scene),
        "proved": claim_of(model).proved_optimal,
        "brought": model.method == METHOD,
        "claims": claim_badges(model),
        "goal_words": goal_words(certificate),
        "goal_sentence": goal_sentence(certificate, scene.file.parameters),
        "price_sentence": price_sentence(certificate),
        "plain_scope": plain_scope(certificate),
        "checked": check_claim(model) if scene.inside else None,
        "absence": absence_words(scene.model),
        "splits": content.splits(model),
        "reach": frontier_context(model),
        "leaf_frontier": content.leaf_frontier(model),
        "training_base": training_base_words(scene.file.tree, scene.file.certificate),
        "unsettled_sizes": content.unsettled_sizes(model),
        "coefficient_frontier": content.coefficient_frontier(model),
        "optimal_trees": content.optimal_trees(model),
        "claim": claim_of(model),
    }


def _use(scene: ModelScene) -> dict[str, Any]:
    model = scene.model
    url = str(scene.query.get("call_url", ""))
    example = example_row(model, inside=scene.inside)
    return {
        "may_call": may_call(scene.user, None, model),
        "curl": snippets.curl(url, example),
        "python": snippets.python(url, example),
        "formats": FORMATS,
        "used": [scene.tree.schema[j].name for j in scene.tree.used_columns],
        "columns": len(scene.tree.schema),
        "predicted": model.predictions.visible_to(scene.user).order_by("-created")[:MAX_LISTED_FILES],
        **try_context(scene, example),
    }


def _history(scene: ModelScene) -> dict[str, Any]:
    model = scene.model
    return {
        "versions": versions.version_records(scene),
        "changes": versions.version_changes(scene),
        "events": list(model.events.select_related("by")) if scene.inside else [],
        "possible": actions.possible_steps(model, scene.user),
        "run": getattr(model, "run", None) if scene.inside else None,
    }


MODES: list[Mode] = [
    Mode(id="tree", label="Tree", template="registry/modes/_tree.html", context=_tree),
    Mode(id="performance", label="Performance", template="registry/modes/_performance.html", context=_performance),
    Mode(id="proof", label="Proof & dossier", template="registry/modes/_proof.html", context=_proof),
    Mode(id="use", label="Use", template="registry/modes/_use.html", context=_use),
    Mode(
        id="history",
        label="History",
        template="registry/modes/_history.html",
        context=_history,
        count=lambda scene: versions.count_versions(scene),
    ),
]
for before, added in added_modes:
    MODES.insert([mode.id for mode in MODES].index(before) + 1, added)


def chosen_mode(scene: ModelScene) -> Mode:
    """Return the requested mode. The default is the tree, or Use if a row was submitted."""
    mode_id = scene.query.get("mode", "use" if scene.typed is not None else "tree")
    visible = [mode for mode in MODES if mode.shown(scene) and not mode.page]
    return next((mode for mode in visible if mode.id == mode_id), visible[0])


def workspace(scene: ModelScene) -> dict[str, Any]:
    """Return the context of the model page in the requested mode."""
    current = chosen_mode(scene)
    facts = content.facts(scene.model)
    interval = performance.unseen_interval(scene)
    if interval is not None and scene.model.train_accuracy <= interval[1]:
        facts["difference"] = None  # the training accuracy is within the interval, so chance explains the difference
    return {
        "model": scene.model,
        "inside": scene.inside,
        "facts": facts,
        "interval": interval,
        "unseen_about": unseen_words(scene.file),
        "selection": selection_of(scene.model),
        "mode": current,
        "modes": [
            {
                "id": m.id,
                "label": m.label,
                "here": m is current,
                "count": m.count(scene),
                "url": reverse(m.page, args=[scene.model.pk]) if m.page else f"?mode={m.id}",
            }
            for m in MODES
            if m.shown(scene)
        ],
        "possible": actions.possible_steps(scene.model, scene.user),
        "served": actions.served_version(scene.model.family),
        "smaller": versions.smaller(scene),
        "rejection": versions.rejection(scene),
        "asked_back": versions.asked_back(scene),
        "editable": scene.can_change and scene.can_be_searched,
        **current.context(scene),
    }
