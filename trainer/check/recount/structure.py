"""Check the structure of a model file: nodes, splits and parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from trainer.check.proof.model import active_parameter
from trainer.check.recount.findings import Finding, columns_of, recount_finding
from trainer.check.recount.restrictions import SIDE
from trainer.check.recount.table.rows import MISSING

COSTS = "costs cost_unit"
GOALS = "goal positive"
MIP = f"{SIDE} {COSTS} first_tree exact_seconds solver mip_gap binarise bins"
LIMITS = f"{SIDE} min_leaf forbidden class_weight optimal_trees"
GROWN = "leaf_penalty min_leaf pruning pruning_folds impurity min_node min_gain"
PLANES = f"leaf_penalty paper_lambda min_leaf hyperplanes first_trees search_seconds solver mip_gap {COSTS}"
CUTS = "max_leaves everywhere several"
CUT_H = f"{PLANES} {CUTS} then_fewest pareto balanced connect tight full_routing symmetry"
COMMON = "seed depth time_limit memory_limit threads unseen_missing test_share folds"
WHOLE = "depth bins max_leaves min_leaf max_columns max_card min_node folds seed height"
SPLITS = {
    "threshold": "feature threshold missing missing_seen", "interval": "feature low high missing missing_seen",
    "missing": "feature", "subset": "feature categories",
    "linear": "features coefficients threshold categories missing missing_seen",
}  # fmt: skip
EMPTY_SIDES = ("left", "right", "refuse")
# members of a file that state a claim
CLAIMS = ("method", "parameters", "certificate", "metrics", "fingerprint", "rows")
LEAF = {"class"}
BRANCH = {"split", "left", "right", "impurity", "impurity_bound", "measure"}
# least values of parameters; training refuses smaller ones
LEAST = {
    0: """depth max_columns max_card optimal_trees seed restarts jumps split_set set_limit folds test_share min_gain time_limit
        split_time_limit search_seconds exact_seconds mip_gap split_gap fairness_delta sensitivity specificity leaf_penalty
        paper_lambda coefficient_penalty""",
    1: "min_leaf max_leaves threads height starts several",
    2: "bins min_node pruning_folds",
}
MOST = {"bins": 1000, "depth": 100, "test_share": 0.9, "folds": 50, "mip_gap": 1, "height": 3}
# method: its guarantee, its kinds of splits (t: threshold, i: interval, s: subset, l: linear, m: missing) and its
# parameters
METHODS = {
    "cart": ("heuristic", "tsm", f"{GROWN} {COSTS}"),
    "converted": ("heuristic", "tislm", ""),  # another program trained this tree
    "oc1": ("heuristic", "tslm", f"{GROWN} restarts jumps cycle {COSTS}"),
    "bivariate": ("splits", "tslm", f"{GROWN} split_gap split_time_limit bound branching order {COSTS}"),
    "local-search": ("subtrees", "tsm", f"leaf_penalty height starts min_leaf class_weight {COSTS}"),
    "exact": ("tree", "tism", f"{LIMITS} leaf_penalty binarise bins extra_thresholds {COSTS} {GOALS} column_price"),
    "exact-numeric": ("tree", "tsm", f"{LIMITS} leaf_penalty mip_gap {COSTS} {GOALS} column_price"),
    "flowoct": ("tree", "tism", f"{MIP} leaf_penalty paper_lambda strengthening"),
    "bendoct": ("tree", "tism", f"{MIP} leaf_penalty paper_lambda root_cuts"),
    "oct": ("tree", "tism", f"{MIP} leaf_penalty paper_lambda thresholds single_features"),
    "binoct": ("tree", "tism", f"{MIP} thresholds"),
    "bendoct-accelerated": ("tree", "tism", f"{MIP} leaf_penalty polishing path_bounds negative_samples structure endpoints_only "
                            "at_integral objective_form split_bounds exact_bounds equivalent_points separated disaggregated "
                            "group_selection split_set set_limit strengthened root_cuts cache"),
    "odt": ("tree", "tism", "topology select max_card sensitivity specificity positive negative_weight frontier bins first_tree "
            f"exact_seconds without solver mip_gap {COSTS}"),
    "cut-h": ("tree", "tslm", CUT_H),
    "cutw-h": ("tree", "tslm", CUT_H),
    "s-oct": ("tree", "tslm", f"{PLANES} {CUTS} big_m"),
    "oct-h": ("tree", "tslm", f"{PLANES} coefficient_penalty big_m scaling"),
}  # fmt: skip


def structure(model: dict[str, Any]) -> list[Finding]:
    """Check the parts of a file that need no rows; raise TypeError, LookupError or ValueError for members of a wrong type."""
    _check_names(model)
    parameters = model.get("parameters") or {}
    for name in WHOLE.split():
        if not isinstance(parameters.get(name) or 0, int):
            raise TypeError(f"the parameter '{name}' is not a whole number")
    for name, least in ((name, least) for least, names in LEAST.items() for name in names.split()):
        if isinstance(parameters.get(name), (int, float)) and parameters[name] < least:
            raise ValueError(f"the parameter '{name}' is {parameters[name]}, and the least is {least}")
    for name, most in MOST.items():  # training refuses larger values, and they would make this check run for hours
        if (parameters.get(name) or 0) > most:
            raise ValueError(f"the parameter '{name}' is over {most}")
    trouble, deepest = tree_trouble(model, model["nodes"])
    # a topology fixes the depth itself, so that `depth` does not apply
    limit = None if active_parameter(model, "topology") else active_parameter(model, "depth")
    if not trouble and limit is not None and deepest > limit:
        trouble = f"The tree has depth {deepest}, over the limit {limit}."
    words = trouble or f"{len(model['nodes'])} nodes, depth {deepest}."
    findings = [recount_finding("structure", not trouble, words, "basis")]
    return findings if has_no_claims(model) else [*findings, _check_method(model)]


def has_no_claims(model: dict[str, Any]) -> bool:
    """Return True if the file holds a tree and claims nothing about it, as `Tree.save` writes it."""
    return not any(model.get(name) for name in CLAIMS)


def _check_names(model: dict[str, Any]) -> None:
    names = [model["target"], *model["classes"]]
    for column in model["columns"]:
        kind = column["kind"]
        categories = column.get("categories") or []
        names += [column["name"], kind, *categories]
        if kind not in ("numeric", "binary", "categorical") or ("categories" in column) != (kind == "categorical"):
            raise ValueError(f"the kind of column {column['name']!r} is not known, or does not go with its categories")
        if len(set(categories)) < len(categories):
            raise ValueError(f"a category of column {column['name']!r} appears twice")
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise TypeError(f"{str(wrong[0])[:80]} is not a name")
    for listed in (model["classes"], [c["name"] for c in model["columns"]] + [model["target"]]):
        if len(set(listed)) < len(listed) or not listed:
            raise ValueError("names are missing, or appear twice")


def tree_trouble(model: dict[str, Any], nodes: Sequence[dict[str, Any]]) -> tuple[str, int]:
    """Return an error of the tree, empty if there is none, and its depth."""
    columns = {c["name"]: c for c in model["columns"]}
    reached = {0}
    depth = {0: 0}
    if not nodes:
        raise LookupError("the tree has no nodes")
    for i, node in enumerate(nodes):
        if node["id"] != i or i not in reached:
            return f"Node {i} has no parent, or a wrong id.", 0
        if len(node["counts"]) != len(model["classes"]):
            return f"Node {i} does not count each class.", 0
        if odd := set(node) & (LEAF if "split" in node else BRANCH):
            return f"Node {i} is a leaf and a question: it has '{min(odd)}'.", 0
        if "split" not in node:
            if node["class"] not in model["classes"]:
                return f"Leaf {i} has a class that is not listed.", 0
            continue
        if trouble := _split_trouble(node["split"], columns):
            return f"Node {i} {trouble}.", 0
        for child in (node["left"], node["right"]):
            if not isinstance(child, int) or not i < child < len(nodes) or child in reached:
                return f"Node {i} has a child that is not its own.", 0
            reached.add(child)
            depth[child] = depth[i] + 1
    return "", max(depth.values())


def _split_trouble(split: dict[str, Any], columns: dict[str, dict[str, Any]]) -> str:
    kind = split["kind"]
    if kind not in SPLITS:
        return f"has a split of the unknown kind '{str(kind)[:40]}'"
    # a reader that knows an additional member could read the split as another question
    if odd := set(split) - {"kind", *SPLITS[kind].split()}:
        return f"has a split with '{min(odd)[:40]}', which none of this kind has"
    names = columns_of(split)
    numbers = [*split.get("coefficients", ()), *(split.get(end) for end in ("threshold", "low", "high"))]
    if not all(math.isfinite(number) for number in numbers if number is not None):
        raise ValueError("a number of a split is not finite")
    if not set(names) <= set(columns):
        return "tests a column that is not listed"
    if trouble := _empty_trouble(split, [columns[name] for name in names]):
        return trouble
    if kind == "subset":
        listed = columns[split["feature"]].get("categories") or []
        return "" if set(split["categories"]) <= set(listed) else "tests a category that is not listed"
    if kind == "linear":
        tests = split.get("categories") or [None] * len(names)
        if not len(split["coefficients"]) == len(names) == len(tests):
            return "has different numbers of coefficients and columns"
        nominal = [columns[name]["kind"] == "categorical" for name in names]
        if any(n if t is None else not n and t != MISSING for n, t in zip(nominal, tests, strict=True)):
            return "weighs a column as a kind that it is not"
        if any(n and t not in columns[c]["categories"] for c, n, t in zip(names, nominal, tests, strict=True)):
            return "tests a category that is not listed"
        return ""
    return "compares a column that does not contain numbers" if columns[names[0]]["kind"] == "categorical" else ""


def _empty_trouble(split: dict[str, Any], used: list[dict[str, Any]]) -> str:
    """Return an error of the members about empty cells; empty if there is none."""
    if not isinstance(split.get("missing_seen", False), bool):
        raise TypeError("'missing_seen' is neither true nor false")
    side = split.get("missing", "refuse")
    if side == "fill" and split["kind"] == "linear":
        tests = split.get("categories") or [None] * len(used)
        filled = [c for c, test in zip(used, tests, strict=False) if test is None]
        if not all(isinstance(c.get("fill"), int | float) and math.isfinite(c["fill"]) for c in filled):
            return "fills empty cells of a column without a fill value"
    elif side not in EMPTY_SIDES:
        return f"sends empty cells to '{str(side)[:40]}'"
    return ""


def _check_method(model: dict[str, Any]) -> Finding:
    """Check that the method is known and allows this guarantee, these splits and these parameters."""
    name = model.get("method")
    certificate = model.get("certificate") or {}
    if name not in METHODS:
        return recount_finding("method", False, f"There is no method '{str(name)[:60]}'.")
    guarantee, kinds, parameters = METHODS[name]
    kinds += "i" if certificate.get("wishes") else ""  # a wish may ask for an interval, whatever the method
    trouble = ""
    if certificate.get("method", name) != name:
        trouble = f"The certificate is about '{str(certificate['method'])[:60]}'."
    elif certificate.get("guarantee", guarantee) != guarantee:
        trouble = f"'{name}' cannot claim '{str(certificate['guarantee'])[:60]}'."
    elif odd := {v["split"]["kind"] for v in model["nodes"] if "split" in v and v["split"]["kind"][0] not in kinds}:
        trouble = f"'{name}' does not make splits of the kind '{min(odd)}'."
    elif unknown := set(model.get("parameters") or {}) - set(f"{parameters} {COMMON}".split()):
        trouble = f"'{name}' has no parameter '{min(unknown)}'."
    elif (model.get("parameters") or {}).get("unseen_missing", "follow") not in ("follow", "refuse"):
        trouble = "The parameter 'unseen_missing' is neither 'follow' nor 'refuse'."
    return recount_finding("method", not trouble, trouble or f"'{name}' may make such a tree and such a claim.")
