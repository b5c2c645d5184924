"""Proofs of deep trees with monotone features, fairness and column limits agree with brute force."""

from __future__ import annotations

import gzip
import itertools
import json
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.check.proof.changes import page
from tests.trainer.check.proof.proof_within_cases import judge_changes
from tests.trainer.check.proof.proofs_cases import Lines, accepted, never
from trainer.check.proof.model import ModelTable
from trainer.check.proof.space.space import read_space
from trainer.check.proof.subject import ProofSpace
from trainer.check.recount import verdict, verify
from trainer.data import encoding
from trainer.data.encoding import Scheme
from trainer.data.problem import Problem
from trainer.data.reader import load
from trainer.families.exact.proofs.rule_proof import ruled_proof
from trainer.families.exact.rules import rule_fronts
from trainer.methods.base import NotProved, Settings, Solution
from trainer.registry import METHODS
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table
from trainer.training.proof_file import ProofLimits, write_proof
from trainer.training.run import TrainRequest, save, train
from trainer.tree.nodes import DraftLeaf

BENDOCT = next(m for m in METHODS if m.id == "bendoct")
NOTHING: dict[str, Any] = {
    "monotone": "", "fairness": "none", "fairness_column": "", "fairness_class": "", "fairness_delta": 0.05, "recall": "",
    "forbidden_pairs": "", "max_leaves": None, "max_columns": None,
}  # fmt: skip
Tree = tuple[tuple[int, ...], int, frozenset[int], int, int, tuple[int, ...]]
# A Tree holds the wrong weight by class, leaves, columns, the first and last class of its leaves, and the favoured
# weight by group.


class Brute:
    """All trees of a table by their relevant numbers. Trees with equal numbers are one."""

    def __init__(self, problem: Problem, asked: dict[str, Any]) -> None:
        self.problem = problem
        self.asked = asked
        self.bits = problem.binary.bits(problem.table) > 0
        self.w = problem.row_weights
        self.y = problem.y
        self.names = problem.table.names
        self.columns = [f.column for f in problem.binary.features]
        texts = [text.rsplit(" ", 1) for text in asked["monotone"].split("; ") if text]
        self.way = {self.names.index(name): way for name, way in texts}
        pairs = [text.split(" + ") for text in asked["forbidden_pairs"].split("; ") if text]
        self.pairs = {frozenset(map(self.names.index, pair)) for pair in pairs}
        self.label = -1
        self.groups: list[np.ndarray] = []
        if asked["fairness"] != "none":
            name = asked["fairness_class"]
            self.label = problem.labels.classes.index(name) if name else int(self.y[self.w > 0].max())
            among = (self.w > 0) & ((self.y == self.label) | (asked["fairness"] == "parity"))
            group = problem.table.columns[self.names.index(asked["fairness_column"])].values
            self.groups = [among & (group == g) for g in np.unique(group[among])]
        self.trees = lru_cache(None)(self._trees)

    def _trees(self, rows: frozenset[int], height: int, above: frozenset[int]) -> frozenset[Tree]:
        own = np.array(sorted(rows))
        found = set()
        for k in range(self.problem.n_classes):
            wrong = [0 if c == k else int(self.w[own[self.y[own] == c]].sum()) for c in range(self.problem.n_classes)]
            wrong = wrong if self.asked["recall"] else [sum(wrong)]
            said = [int(self.w[own[g[own]]].sum()) if k == self.label else 0 for g in self.groups]
            found.add((tuple(wrong), 1, frozenset(), k, k, tuple(said)))
        for q, column in enumerate(self.columns) if height else ():
            no = own[~self.bits[own, q]]
            yes = own[self.bits[own, q]]
            if min(self.w[no].sum(), self.w[yes].sum()) < 1 or any({column, a} in self.pairs for a in above):
                continue
            below = above | {column} if self.pairs else above
            sides = [self.trees(frozenset(part.tolist()), height - 1, below) for part in (no, yes)]
            for a, b in itertools.product(*sides):
                low, high = (a, b) if self.way.get(column) != "down" else (b, a)
                if column not in self.way or low[4] <= high[3]:
                    wrong, said = (tuple(map(sum, zip(a[i], b[i], strict=True))) for i in (0, 5))
                    classes = (min(a[3], b[3]), max(a[4], b[4])) if self.way else (0, 0)
                    asked = a[2] | b[2] | {column} if self.asked["max_columns"] is not None else frozenset()
                    found.add((wrong, a[1] + b[1], asked, *classes, said))
        return frozenset(found)

    def least(self) -> Fraction | None:
        """Return the least cost in rows of the trees within all restrictions."""
        every = self.trees(frozenset(np.flatnonzero(self.w > 0).tolist()), self.asked["depth"], frozenset())
        return min((sum(t[0]) + self.problem.kappa * t[1] for t in every if self.kept(t)), default=None)

    def kept(self, tree: Tree) -> bool:
        asked = self.asked
        classes = self.problem.labels.classes
        for text in asked["recall"].split("; ") if asked["recall"] else ():
            name, share = text.rsplit(": ", 1)
            k = classes.index(name)
            size = int(self.w[self.y == k].sum())
            if size - tree[0][k] < Fraction(share) * size:
                return False
        rates = [Fraction(s, int(self.w[g].sum())) for s, g in zip(tree[5], self.groups, strict=True)]
        return (
            tree[1] <= (asked["max_leaves"] or 99)
            and (asked["max_columns"] is None or len(tree[2]) <= asked["max_columns"])
            and (not rates or max(rates) - min(rates) <= Fraction(str(asked["fairness_delta"])))
        )


def table(rng: np.random.Generator, rows: int) -> Problem:
    """Return a table with thresholds, zeros and ones, and sometimes categories.

    The class follows two of the columns, with exceptions.
    """
    n = int(rng.integers(rows // 2, rows + 1))
    classes = 2 + int(rng.random() < 0.3)
    kinds = ["numeric", "binary", "binary", "categorical" if rng.random() < 0.3 else "numeric"]
    columns = []
    for j, kind in enumerate(kinds):
        values = rng.integers(0, 2 if kind == "binary" else 3, n).astype(float)
        schema = ColumnSchema(
            name=f"c {j}", kind=ColumnKind(kind), categories=("a", "b", "c d") if kind == "categorical" else ()
        )
        columns.append(Column(schema=schema, cells=values))
    y = (columns[0].values + columns[1].values + (rng.random(n) < 0.35)).astype(int) % classes
    return Problem(
        table=Table(columns=tuple(columns), row_numbers=np.arange(1, n + 1)),
        labels=Labels(name="class", classes=("no", "yes", "may be")[:classes], codes=y.astype(np.int32)),
        leaf_penalty=[Fraction(0), Fraction(1, 20), Fraction(1, 100)][rng.integers(3)],
        weights=rng.integers(1, 4, n) if rng.random() < 0.4 else None,
        scheme=Scheme.ALL_THRESHOLDS,
    )


def restrictions(rng: np.random.Generator, problem: Problem, depth: int) -> dict[str, Any]:
    """Return random restrictions, among them a monotone column or rates of groups.

    Without suitable columns in the table, return none.
    """
    names = problem.table.names
    classes = problem.labels.classes
    asked = NOTHING | {"depth": depth}
    tests = [(f.column, f.test) for f in problem.binary.features]
    thresholds = sorted(
        {c for c, test in tests if test == encoding.Test.ABOVE}
        - {c for c, test in tests if test != encoding.Test.ABOVE}
    )
    if thresholds and depth < 5 and rng.random() < 0.6:
        chosen = rng.choice(thresholds, min(len(thresholds), int(rng.integers(1, 3))), replace=False)
        asked["monotone"] = "; ".join(f"{names[c]} {rng.choice(['up', 'down'])}" for c in chosen.tolist())
    if not asked["monotone"] or rng.random() < 0.5:
        asked["fairness"] = "parity" if len(classes) == 2 and rng.random() < 0.5 else "opportunity"
        asked["fairness_column"] = str(rng.choice(names))
        asked["fairness_class"] = str(rng.choice(["", classes[int(rng.choice(problem.y[problem.row_weights > 0]))]]))
        asked["fairness_delta"] = float(rng.choice([0, 0.05, 0.21, 0.4]))
    if rng.random() < 0.3:
        asked["recall"] = f"{classes[int(rng.choice(problem.y))]}: {rng.choice(['0.5', '0.75', '1'])}"
    if rng.random() < 0.3:
        asked["max_leaves"] = int(rng.integers(2, 6))
    if rng.random() < 0.4:
        asked["max_columns"] = int(rng.integers(0, len(names) + 1))
    if rng.random() < 0.3 and len(names) > 1:
        asked["forbidden_pairs"] = " + ".join(rng.choice(names, 2, replace=False).tolist())
    return asked


def space_of(problem: Problem, asked: dict[str, Any]) -> ProofSpace:
    """Build the space as the checker does it from a model file."""
    columns = [
        {"name": c.schema.name, "kind": str(c.schema.kind), "categories": list(c.schema.categories)}
        for c in problem.table.columns
    ]
    values = [np.asarray(c.values, float) for c in problem.table.columns]
    rows = ModelTable(values, problem.y, problem.row_weights, problem.row_weights)
    document = {
        "method": "bendoct", "classes": list(problem.labels.classes), "columns": columns,
        "parameters": asked | {"binarise": "all-thresholds", "bins": 5},
        "certificate": {"leaf_penalty": str(problem.leaf_penalty)},
    }  # fmt: skip
    return read_space(document, rows)


def settings_of(asked: dict[str, Any]) -> Settings:
    return BENDOCT.settings({k: v for k, v in asked.items() if v is not None})


def proof_lines(problem: Problem, asked: dict[str, Any], best: Fraction) -> Lines:
    """Return the file that is written for a claim of this least cost in rows."""
    claim = Solution(draft=DraftLeaf(), bound=float(1 - best / problem.n))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "proof.jsonl.gz"
        made = write_proof(path, problem, BENDOCT, settings_of(asked), claim, ProofLimits())
        assert made["made"], made
        return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def written(seed: int, depth: int, rows: int) -> tuple[ProofSpace, Lines, Fraction] | None:
    """Return the space of the checker, the proof, and the least cost in rows, or None if no tree is possible."""
    rng = np.random.default_rng(seed)
    problem = table(rng, rows)
    asked = restrictions(rng, problem, depth)
    best = Brute(problem, asked).least()
    if best is None:
        return None
    with pytest.raises(NotProved, match="better tree"):
        ruled_proof(problem, settings_of(asked), best + Fraction(1, problem.kappa.denominator), never)
    return space_of(problem, asked), proof_lines(problem, asked, best), best


@pytest.mark.slow
@seeds(36)
def test_depth_four_within_rules_is_proved_and_no_more(seed):
    """No change of a proof makes it prove something false."""
    made = written(seed, 4, 9)
    if made is not None:
        space, lines, best = made
        assert accepted(space, lines) == best
        assert accepted(space, [lines[0] | {"goal": lines[0]["goal"] + lines[0]["scale"]}, *lines[1:]]) is None
        if seed % 4 == 0:
            judge_changes(space, lines, best, most=1)


@pytest.mark.slow
@seeds(30)
def test_limits_of_columns_and_deeper_trees_within_rules(seed):
    made = written(500 + seed, 2 + seed % 2 if seed % 3 else 5, 8)
    if made is not None:
        space, lines, best = made
        assert accepted(space, lines) == best
        assert accepted(space, [lines[0] | {"goal": lines[0]["goal"] + lines[0]["scale"]}, *lines[1:]]) is None


@pytest.mark.slow
def test_each_step_below_the_root_is_needed_by_most_proofs():
    tried = missed = 0
    for seed in range(100, 112):
        made = written(seed, 4, 9)
        for k in range(1, len(made[1]) - 1) if made and any(s["by"] == "within" for s in made[1][1:]) else ():
            tried += 1
            missed += accepted(made[0], [*made[1][:k], *made[1][k + 1 :]]) is None
    assert tried > 50
    assert missed > tried / 2, (missed, tried)


@pytest.mark.slow
@seeds(30)
def test_no_step_is_about_path_forbidden_by_pairs(seed):
    """This holds even if the pairs cost nothing.

    A path with both columns of a pair is refused, and so is the whole proof.
    """
    rng = np.random.default_rng(seed)
    problem = table(rng, 16)
    asked = NOTHING | {
        "depth": 4 + seed % 2,
        "forbidden_pairs": " + ".join(rng.choice(problem.table.names, 2, replace=False)),
    }
    best = Brute(problem, asked).least()
    lines = proof_lines(problem, asked, best)
    assert accepted(space_of(problem, asked), lines) == best
    assert (
        accepted(space_of(problem, asked), [lines[0] | {"goal": lines[0]["goal"] + lines[0]["scale"]}, *lines[1:]])
        is None
    )


@pytest.mark.parametrize(
    "rule",
    [{"monotone": "a down", "first_tree": "exact"}, {"fairness": "opportunity", "fairness_column": "g", "fairness_delta": 0.01}],
    ids=["monotone", "fairness"],
)  # fmt: skip
def test_both_checkers_accept_deep_proof_and_no_higher_goal(tmp_path, rule):
    rng = np.random.default_rng(1)
    a = rng.integers(0, 3, 16)
    b = rng.integers(0, 2, 16)
    c = rng.integers(0, 2, 16)
    g = rng.integers(0, 2, 16)
    kind = np.where((a + b + (rng.random(16) < 0.3)) % 2, "yes", "no")
    data, model, proof = (tmp_path / name for name in ("rows.csv", "model.json", "proof.jsonl.gz"))
    rows = [f"{q},{r},{s},{'mw'[t]},{u}" for q, r, s, t, u in zip(a, b, c, g, kind, strict=True)]
    data.write_text("\n".join(["a,b,c,g,kind", *rows]) + "\n")
    columns, labels, _ = load(data, target="kind")
    asked = {"depth": 4, "bins": 3, "leaf_penalty": 0.02, **rule}
    save(
        train(
            TrainRequest(table=columns, labels=labels, method="bendoct-accelerated", parameters=asked, proof=proof)
        ).model,
        model,
    )
    assert verdict(verify(model, data, proof)) == "proved"
    lines = [json.loads(line) for line in gzip.decompress(proof.read_bytes()).splitlines()]
    assert "within" in {line.get("by") for line in lines}
    higher = [lines[0] | {"goal": lines[0]["goal"] + lines[0]["scale"]}, *lines[1:]]
    texts = ["\n".join(map(json.dumps, some)) for some in (lines, higher)]
    assert page([(model.read_text(), text, data.read_text()) for text in texts]) == [True, False]


def test_too_long_proof_states_size_of_space(monkeypatch):
    made = written(0, 4, 9)
    assert made is not None
    monkeypatch.setattr(rule_fronts, "MAX_SUBPROBLEMS", 3)
    problem = table(np.random.default_rng(0), 9)
    asked = NOTHING | {"depth": 4, "fairness": "opportunity", "fairness_column": "c 0", "fairness_delta": 0.0}
    with pytest.raises(NotProved, match=r"would take too long: \d questions are too many for depth 4"):
        ruled_proof(problem, settings_of(asked), made[2] + 3, never)
