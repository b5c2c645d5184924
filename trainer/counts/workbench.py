"""Find the best tree under wishes from counts, with prices and conflicts.

The search is that of the workbench (`trainer.editing`). A path names the rows of a place: int32 literals, 2 q for no to
the counted question q and 2 q + 1 for yes, ascending.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trainer.counts.folder import Counts
from trainer.counts.objective import CountedObjective, counted_objective
from trainer.counts.proof import proof_lines
from trainer.counts.search import Counted, TreeSearch
from trainer.counts.search import Shape as CountedShape
from trainer.counts.train import (
    CountedTree,
    certify_counts,
    counted_settings,
    counted_tree,
    mirrored_questions,
    oriented,
    setting_names,
    tree_of,
    tree_search,
)
from trainer.data.problem import Problem
from trainer.editing.complete import Completer, Completion, check_conflict
from trainer.editing.prefix import Prefix
from trainer.editing.questions import Questions
from trainer.editing.space import INFINITE_COST, DemandedQuestion, EditingSpace
from trainer.editing.wishes import parse_all
from trainer.editing.words import check_reasons
from trainer.errors import InfeasibleError, ParameterError
from trainer.methods.base import Settings
from trainer.solver_common.problem_setup import pose
from trainer.table import Column, Labels, Table
from trainer.training.claims import read_claim
from trainer.training.proof_file import MAX_PROOF_BYTES, write_lines
from trainer.tree.describe import split_text
from trainer.tree.shapes import LabelledShape, Shape
from trainer.tree.splits import Split

REFUSED = ("max_leaves", "forbidden_pairs", "recall", "costs", "cost_unit")  # settings that wishes from counts lack
MOST_COST = 1 << 61
MOST_NAMED = 8  # counted questions that an error names


class _CountedQuestions(Questions):
    """The counted questions, and the mirrored ones after them; `base` and `one_left` are those of `oriented`."""

    def __init__(self, counts: Counts, problem: Problem) -> None:
        self.problem = problem
        self.encoded = len(counts.questions)
        mirrored = mirrored_questions(counts)
        both = [oriented(counts, question) for question in range(self.encoded + len(mirrored))]
        self.base = [one.base for one in both]
        self.one_left = [one.one_left for one in both]
        self.held = []
        self.splits = [one.split for one in both]
        self.columns = [split.used[0] for split in self.splits]
        self.mirrors = {question: self.encoded + place for place, question in enumerate(mirrored)}

    def find(self, split: Split) -> int:
        """Return the number of a question; raise ParameterError for one that was not counted."""
        if split in self.splits:
            return self.splits.index(split)
        schema = self.problem.table.schema
        known = [self.wish(q) for q, other in enumerate(self.splits) if other.used == split.used]
        named = "; ".join(known[:MOST_NAMED]) or "none"
        words = f"the question '{split_text(split, schema)}' was not counted. Counted about this column: {named}."
        raise ParameterError({"wish": words})


class _Known(NamedTuple):
    """The least cost of a subproblem, which is always exact."""

    lower: int
    exact: bool = True


class _CountedSpace(EditingSpace):
    """The trees over the counted questions."""

    questions: _CountedQuestions

    def __init__(self, counts: Counts, settings: Settings, search: TreeSearch, objective: CountedObjective) -> None:
        super().__init__()
        self.counted_search = search
        self.problem = _problem_of(counts, settings)
        self.questions = _CountedQuestions(counts, self.problem)
        self.depth = search.depth
        self.min_leaf = search.min_leaf
        self.banned = _banned(counts, search)
        self.n_classes = len(counts.questions.classes)
        price = objective.price
        scale = (1 << self.depth) + 1
        if scale * (price.denominator * counts.rows + (price.numerator << self.depth)) >= MOST_COST:
            words = "it has too many digits for exact integer costs. Round it to six digits."
            raise ParameterError({"leaf_penalty": words})
        self.scale = scale
        self.unit = scale * price.denominator
        self.leaf = scale * price.numerator + 1  # ties are broken by fewer leaves
        self.leaf_rows = price
        self._nodes: dict[bytes, Counted] = {}
        self._costs: dict[tuple[bytes, int, frozenset[int]], _Known] = {}

    @property
    def all_rows(self) -> np.ndarray:
        """The empty path."""
        return np.zeros(0, np.int32)

    def node(self, rows: np.ndarray) -> Counted:
        """Return the counts at a path."""
        key = rows.tobytes()
        if key not in self._nodes:
            node = self.counted_search.root
            for place, literal in enumerate(rows.tolist()):
                node = self.counted_search.sides(node, literal // 2, self.depth - place)[literal % 2]
            self._nodes[key] = node
        return self._nodes[key]

    def counts(self, rows: np.ndarray) -> np.ndarray:
        return self.node(rows).own.total

    def weight(self, rows: np.ndarray) -> int:
        return int(self.counts(rows).sum())

    def split(self, rows: np.ndarray, question: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the paths of the rows that go left, which answer yes, and of those that go right."""
        base = 2 * self.questions.base[question]
        one_left = int(self.questions.one_left[question])
        left, right = (np.sort(np.append(rows, np.int32(base + side))) for side in (one_left, 1 - one_left))
        return left, right

    def candidates(
        self, rows: np.ndarray, banned: frozenset[int], asks: list[DemandedQuestion], *, alike: bool
    ) -> list[int]:
        node = self._without(rows, banned)
        sizes = node.own.one.sum(axis=0)
        enough = np.minimum(sizes, int(node.own.total.sum()) - sizes) >= self.min_leaf
        columns = self.questions.columns
        found = np.flatnonzero(node.allowed & enough).tolist()
        return [q for q in found if all(ask.admits(columns[q], q) for ask in asks)]

    def _without(self, rows: np.ndarray, banned: frozenset[int]) -> Counted:
        """Return the counts at a path, for trees without the banned columns."""
        node = self.node(rows)
        if not banned:
            return node
        columns = np.array(self.questions.columns[: self.questions.encoded], np.int64)
        return replace(node, allowed=node.allowed & ~np.isin(columns, sorted(banned)))

    def solve(
        self,
        rows: np.ndarray,
        path: tuple[int, ...] | None,
        height: int,
        banned: frozenset[int],
        ub: int = INFINITE_COST,
    ) -> _Known:
        key = (rows.tobytes(), height, banned)
        if key not in self._costs:
            node = self._without(rows, banned)
            self._costs[key] = _Known(min(self._cost_by_leaves(node, height)))
        return self._costs[key]

    def _cost_by_leaves(self, node: Counted, height: int) -> list[int]:
        """Return the least costs of trees with at most 1, 2, … leaves; INFINITE_COST where a leaf would be too small."""
        rows = int(node.own.total.sum())
        correct = self.counted_search.best_of(node, height).correct
        return [
            self.unit * (rows - won) + self.leaf * size if won >= 0 else INFINITE_COST
            for size, won in enumerate(correct, 1)
        ]

    def tree(
        self, rows: np.ndarray, path: tuple[int, ...] | None, height: int, banned: frozenset[int], cost: int
    ) -> Shape:
        node = self._without(rows, banned)
        leaves = self._cost_by_leaves(node, height).index(cost) + 1
        return self._as_questions(self.counted_search.shape_of(node, height, leaves))

    def _as_questions(self, shape: CountedShape) -> Shape:
        """Convert (question, no side, yes side) to (question, left, right)."""
        if not isinstance(shape, tuple):
            return None
        zero, one = (self._as_questions(part) for part in shape[1:])
        return (shape[0], one, zero) if self.questions.one_left[shape[0]] else (shape[0], zero, one)

    def as_counted(self, tree: LabelledShape) -> CountedShape:
        """Convert (question, left, right) to (question, no side, yes side)."""
        if not isinstance(tree, tuple):
            return -1 if tree is None else tree
        left, right = (self.as_counted(part) for part in tree[1:])
        return (tree[0], right, left) if self.questions.one_left[tree[0]] else (tree[0], left, right)

    @property
    def nodes(self) -> int:
        return len(self._costs)

    def exact_cost(self, cost: int) -> Fraction:
        return Fraction(cost // self.scale, self.leaf_rows.denominator)


def _problem_of(counts: Counts, settings: Settings) -> Problem:
    """Return one row with the weight of all: it names columns and classes, and where cells may be empty."""
    encoding = counts.questions.encoding
    empty = {feature.column for feature in encoding.features if feature.empty is not None or feature.test == "empty"}
    columns = tuple(
        Column(schema=own, cells=np.array([np.nan if j in empty else 0.0])) for j, own in enumerate(encoding.schema)
    )
    labels = Labels(name=counts.questions.target, classes=counts.questions.classes, codes=np.zeros(1, np.int32))
    table = Table(columns=columns, row_numbers=np.ones(1, np.int64))
    return pose(table, labels, settings, weights=np.array([counts.rows], np.int64))


def complete_counts(
    counts: Counts,
    wishes: Sequence[str],
    parameters: Mapping[str, Any] | None = None,
    *,
    reasons: Mapping[str, str] | None = None,
    name: str = "",
    proof: Path | None = None,
    proof_size: int = MAX_PROOF_BYTES,
) -> CountedTree:
    """Find the best tree that keeps the wishes, with the price of each wish.

    Parameters
    ----------
    counts : Counts
    wishes : sequence of str
        Constraints as text, such as "ask root age <= 50" (docs/argue.md), over counted questions.
    parameters : Mapping, optional
        Settings as for `train_counts`, without max_leaves, forbidden_pairs, recall and costs.
    reasons : Mapping, optional
        Reasons of the user, by the text of the wish.
    name : str
        A name for the model file.
    proof : Path, optional
        File for the proof of the bound, of at most `proof_size` bytes.

    Raises
    ------
    ParameterError
        If a wish or a setting needs more than the counts have, or numbers of the counts are secret.
    ConflictError
        If no tree keeps all wishes.
    InfeasibleError
        If no tree satisfies the settings.
    """
    start = time.monotonic()
    settings = counted_settings(parameters or {}, asked=counts.questions.asked, depth=counts.depth)
    if refused := [name for name in REFUSED if settings[name]]:
        raise ParameterError({refused[0]: "wishes from counts do not support it. Leave it out."})
    if counts.suppress:
        raise ParameterError({"suppress": "small numbers of these counts are secret, so wishes have no exact price."})
    names = setting_names(counts)
    total = counts.total[0]
    objective = counted_objective(settings, names, total[:, 0], rows=counts.rows, suppressed=False)
    search = tree_search(counts, settings, total, total)
    space = _CountedSpace(counts, settings, search, objective)
    texts = parse_all(wishes, space.questions)
    reason_texts = check_reasons(reasons or {}, [wish.text for wish in texts])
    completion = Completer(Prefix(space)).complete(texts)
    check_conflict(completion)
    if not completion.found:
        raise InfeasibleError(f"No tree has {settings['min_leaf']} rows or more in each leaf. Set a lower min_leaf.")
    tree = tree_of(space.as_counted(completion.tree), counts, objective)
    certificate = certify_counts(counts, settings, tree, objective, time.monotonic() - start)
    if proof is not None:
        gain = sum(leaf.counts[leaf.label] for leaf in tree.leaves)
        lines = partial(proof_lines, counts, settings, objective, gain, tree.n_leaves, within=True)
        written = write_lines(proof, lines, proof_size)
        certificate = replace(certificate, evidence=(*certificate.evidence, written))
    record = _wish_record(completion, reason_texts, counts.rows)
    counted = counted_tree(counts, settings, tree, objective, certificate, claim=record, name=name)
    price = read_claim(counted.model.certificate).price_rows
    return replace(counted, summary=counted.summary | record | {"price_rows": price})


def _banned(counts: Counts, search: TreeSearch) -> frozenset[int]:
    """Return the forbidden columns that have questions."""
    features = counts.questions.encoding.features
    return frozenset(f.column for f, allowed in zip(features, search.allowed.tolist(), strict=True) if not allowed)


def _wish_record(completion: Completion, reasons: Mapping[str, str], rows: int) -> dict[str, Any]:
    """Return the members of the certificate about wishes: their prices as shares, and the optimum without them."""
    optimum = completion.optimum
    assert optimum is not None
    wishes = [
        {"wish": priced.wish.text, "price": None if priced.price is None else float(priced.price / rows)}
        | ({"reason": reasons[priced.wish.text]} if priced.wish.text in reasons else {})
        for priced in completion.prices
    ]
    ends = {"objective": float(1 - optimum.cost / rows), "bound": float(1 - optimum.bound / rows)}
    return {"wishes": wishes, "optimum": ends | {"proved": optimum.cost == optimum.bound}}
