"""Compare every option of odt with brute force over all trees of the topology, on small random tables.

A table has up to nine rows in up to three columns of up to four categories or numbers, with equal rows and constant
columns.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tests.trainer.odt.odt_cases import brute, problem_of
from tests.trainer.odt.odt_goal_cases import reachable, reached
from trainer.certificate import Certificate
from trainer.data.problem import Problem
from trainer.errors import InfeasibleError
from trainer.families.odt.choice import select_columns
from trainer.families.odt.grouping import make_groups
from trainer.families.odt.topology import NAMED, parse
from trainer.methods.monitor import Monitor
from trainer.registry import get
from trainer.table import ColumnKind
from trainer.training.run import fit
from trainer.tree.nodes import Tree

TEXTS = ("[[..].]", "[.[..]]", "[[..][.[..]]]", "[.[.[..]]]", "[[[..].][..]]")
SHAPES = (*NAMED.values(), *TEXTS)
SHARES = (0.0, 0.25, 1 / 3, 0.5, 0.75, 0.9, 1.0)
OPTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    **{f"topology={name}": ({"topology": name},) for name in NAMED},
    "topology as text": tuple({"topology": text} for text in TEXTS),
    "three classes": ({"classes": 3},),
    "bins=3": ({"bins": 3, "numeric": True}, {"bins": 2, "numeric": True}),
    "max_card": ({"max_card": 1}, {"max_card": 2}),
    "three classes and max_card": ({"classes": 3, "max_card": 1}, {"classes": 3, "max_card": 2}),
    "negative_weight": tuple({"negative_weight": w} for w in ("0", "0.4", "2.5", "7", "balanced")),
    "sensitivity": tuple({"sensitivity": s} for s in SHARES),
    "specificity": tuple({"specificity": s} for s in SHARES),
    "both shares": tuple({"sensitivity": s, "specificity": t} for s in SHARES[2:] for t in SHARES[2:]),
    "both, first class positive": tuple({"sensitivity": s, "specificity": 0.6, "positive": "k0"} for s in SHARES),
    "max_card and sensitivity": tuple({"sensitivity": s, "max_card": 1} for s in SHARES),
    "select=cart": ({"select": "cart"},),
    "topology=auto": ({"topology": "auto"},),
    "frontier": ({"frontier": True}, {"frontier": True, "max_card": 1}),
    "row weights": ({"weighted": True},),
    **{f"without={what}": ({"without": what},) for what in ("anchor", "relax", "strengthen", "anchor, relax, strengthen")},
    "without, with max_card": tuple({"without": w, "max_card": 1} for w in ("anchor", "relax", "strengthen")),
    **{f"first_tree={tree}": ({"first_tree": tree},) for tree in ("none", "exact")},
}  # fmt: skip
SEARCH_ONLY = ("frontier",)
SOLVER_ONLY = ("without", "first_tree")


def applies(option: str, solver: str) -> bool:
    """Return whether a solver, or the search, has this option."""
    return not option.startswith(SOLVER_ONLY) if solver == "search" else option not in SEARCH_ONLY


def instance(option: str, seed: int) -> tuple[Problem, str, dict[str, Any]]:
    """Return a problem, a topology and the settings of one instance of an option."""
    variants = OPTIONS[option]
    settings = dict(variants[seed % len(variants)])
    problem = table(seed, settings.pop("classes", 2), settings.pop("numeric", False), settings.pop("weighted", False))
    return problem, settings.pop("topology", SHAPES[seed // len(variants) % len(SHAPES)]), settings


def table(seed: int, classes: int, numeric: bool, weighted: bool) -> Problem:
    """Return a random problem, in which the first and the last class occur."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 10))
    p = int(rng.integers(1, 4))
    kinds = [ColumnKind.NUMERIC if numeric or rng.random() < 0.4 else ColumnKind.CATEGORICAL for _ in range(p)]
    columns = [rng.integers(0, int(rng.integers(1, 5)) * (1 + numeric), n) for _ in range(p)]
    y = [int(k) for k in rng.integers(0, classes, n)]
    y[0], y[1] = 0, classes - 1
    problem = problem_of(columns, y, kinds)
    return replace(problem, weights=rng.integers(1, 5, n)) if weighted else problem


def binned(problem: Problem, bins: int, columns: tuple[int, ...] | None = None) -> Problem:
    """Return the problem that brute force sees: numbers are replaced by their bins, and other columns are left out."""
    made = []
    for j, column in enumerate(problem.table.columns):
        if columns is not None and j not in columns:
            continue
        if column.kind is ColumnKind.NUMERIC:
            ranked = sorted(column.values)
            # The edge is the smallest value that at least k/bins of the rows do not exceed.
            edges = {ranked[-(-k * len(ranked) // bins) - 1] for k in range(1, bins)}
            column = replace(column, cells=np.array([float(sum(v > e for e in edges)) for v in column.values]))
        made.append(column)
    return replace(problem, table=replace(problem.table, columns=tuple(made)))


def repeated(problem: Problem) -> Problem:
    """Return the problem with weighted rows replaced by equal rows."""
    rows = np.repeat(np.arange(len(problem.table)), problem.row_weights)
    return Problem(table=problem.table.take(rows), labels=problem.labels.take(rows))


def check(problem: Problem, solver: str, topology: str, settings: dict[str, Any]) -> None:
    """Train, and compare the tree, the bound and the claim with brute force. Raises AssertionError."""
    raw = {"bins": 60, "topology": topology, "positive": f"k{problem.n_classes - 1}", "solver": solver} | settings
    values = get("odt").settings(raw)
    seen = repeated(binned(problem, raw["bins"], _columns(problem, values)))
    try:
        tree, certificate, _ = fit(get("odt"), problem, values, Monitor())
    except InfeasibleError as error:
        said = error.best
    else:
        said = None
        _check_tree(problem, seen, tree, certificate, topology, values)
    if said is not None:
        assert not _admitted(seen, topology, values), "called infeasible"
        kept = [p for p in _pairs(seen, topology, values) if p[0] >= _least(seen, values)[0]]
        assert abs(said - max(p[1] for p in kept) / _rows(seen, values)[1]) < 1e-9, "another best share"


def _check_tree(
    problem: Problem, seen: Problem, tree: Tree, certificate: Certificate, topology: str, values: Any
) -> None:
    required = values["sensitivity"] is not None or values["specificity"] is not None
    goal = required or values["frontier"] or values["negative_weight"] != "1"
    assert certificate.proved_optimal, certificate.status
    if values["topology"] == "auto":
        chosen = next(e["chosen"] for e in certificate.evidence if e["kind"] == "topology-choice")
        topology = NAMED[chosen]
    if not goal:
        best = brute(seen, parse(topology), values["max_card"])
        assert problem.correct(tree) == best, f"{problem.correct(tree)} for {best}"
        assert abs(certificate.bound - best / seen.n) < 1e-9
        return
    tp, tn = reached(problem, tree)
    if values["positive"] == "k0":
        tp, tn = tn, tp
    admitted = _admitted(seen, topology, values)
    least = _least(seen, values)
    assert tp >= least[0], "too little sensitivity"
    assert tn >= least[1], "too little specificity"
    if values["frontier"]:
        assert [(a, b) for a, b, _ in certificate.evidence[0]["pairs"]] == _pairs(seen, topology, values)
    single = (values["sensitivity"] is None) != (values["specificity"] is None)
    weights = _weights(seen, values) if not single else (0, 1) if values["specificity"] is None else (1, 0)
    best = max(weights[0] * a + weights[1] * b for a, b in admitted)
    assert weights[0] * tp + weights[1] * tn == best, f"{tp, tn} for {best}"


def _columns(problem: Problem, values: Any) -> tuple[int, ...] | None:
    if values["select"] != "cart":
        return None
    return select_columns(make_groups(problem, values["bins"], values["max_card"]), values["seed"]).columns


def _rows(problem: Problem, values: Any) -> tuple[int, int]:
    positive = problem.y == problem.labels.classes.index(values["positive"])
    return int(positive.sum()), int((~positive).sum())


def _least(problem: Problem, values: Any) -> list[int]:
    shares = [Fraction(str(values[name] or 0)) for name in ("sensitivity", "specificity")]
    return [-(-s * n // 1) for s, n in zip(shares, _rows(problem, values), strict=True)]


def _pairs(problem: Problem, topology: str, values: Any) -> list[tuple[int, int]]:
    pairs = reachable(problem, parse(topology), values["max_card"] or 0)
    return [(b, a) for a, b in pairs] if values["positive"] == "k0" else pairs


def _admitted(problem: Problem, topology: str, values: Any) -> list[tuple[int, int]]:
    least = _least(problem, values)
    return [p for p in _pairs(problem, topology, values) if p[0] >= least[0] and p[1] >= least[1]]


def _weights(problem: Problem, values: Any) -> tuple[Fraction, Fraction]:
    own = _rows(problem, values)
    given = values["negative_weight"]
    return Fraction(1), Fraction(own[0], own[1]) if given == "balanced" else Fraction(given)
