"""ODT: optimal trees for categorical data on a fixed topology, with subset branching (Günlük et al.).

Every decision node tests one column: a subset of its categories, or a threshold between its bins. The search is the exact one of
`trainer.search.subset`, which needs no MIP solver.
"""

from __future__ import annotations

import numpy as np

from trainer.certificate import Guarantee
from trainer.data.problem import Problem
from trainer.errors import DataError
from trainer.methods.base import COMMON, DEPTH, Method, Parameter, Settings, Solution, having
from trainer.monitor import Monitor
from trainer.search.subset import Groups, Stopped, SubsetSearch
from trainer.search.topology import Shape, parse
from trainer.table import Kind
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf
from trainer.tree.splits import Subset, Threshold

MAX_CATEGORIES = 62  # a subset is a mask of 64 bits


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Search all trees of the topology; the claim speaks of the column groups and bins that were used."""
    shape = parse(settings["topology"]) if settings["topology"] else complete(settings["depth"])
    if shape is None:
        return Solution(draft=DraftLeaf(), bound=_majority(problem), scope="the tree without a question")
    groups = make_groups(problem, settings["bins"], settings["max_card"])
    search = SubsetSearch(groups=groups, root=shape, stopped=monitor.stopped, flag=monitor.flag)
    found: list[tuple[int, Draft]] = [(-1, DraftLeaf())]

    def better(value: int, draft: Draft) -> None:
        found[0] = (value, draft)
        monitor.report(phase="search", incumbent=value / problem.n, nodes=search.nodes, draft=draft)

    search.on_incumbent = better
    rows = np.arange(len(problem.y))
    ceiling = search.ceiling(rows)
    monitor.report(phase="search", bound=ceiling / problem.n)
    finished, value = True, ceiling
    try:
        value, draft = search.solve(shape, rows)
        if draft is not None:
            found[0] = (value, draft)
    except Stopped:
        finished, value = False, ceiling
    monitor.report(bound=value / problem.n, nodes=search.nodes)
    limit = f", subsets of at most {settings['max_card']} categories or all but as many" if settings["max_card"] else ""
    return Solution(
        draft=found[0][1],
        bound=value / problem.n,
        finished=finished,
        scope=f"all trees of this topology ({shape.nodes} questions, at most {shape.depth} a row) over subsets of "
        f"{len(groups.sizes)} columns, numeric ones in at most {settings['bins']} bins{limit}",
        nodes=search.nodes,
        encoded_features=int(groups.sizes.sum()),
        evidence=({"kind": "subset-search", "states": search.nodes},),
    )


def complete(depth: int) -> Shape | None:
    """The topology of all trees of at most `depth` questions; None for depth 0."""
    if depth == 0:
        return None
    below = complete(depth - 1)
    return Shape(below, below)


def make_groups(problem: Problem, bins: int, card: int) -> Groups:
    """Columns as groups: categories that occur, or bins between quantiles for numeric columns; constant ones are left out.

    Raises DataError for a column with more than 62 categories.
    """
    columns: list[int] = []
    codes: list[np.ndarray] = []
    sizes: list[int] = []
    ordered: list[int] = []
    meaning: list[np.ndarray] = []
    for j, column in enumerate(problem.table.columns):
        nominal = column.kind is Kind.CATEGORICAL
        values = np.unique(column.values) if nominal else _edges(column.values, bins)
        size = len(values) if nominal else len(values) + 1
        if size < 2:
            continue
        if size > MAX_CATEGORIES:
            raise DataError(
                f"Column '{column.name}' has {size} categories; odt takes at most {MAX_CATEGORIES}. Leave it out or merge rare ones."
            )
        columns.append(j)
        codes.append(np.searchsorted(values, column.values, side="left").astype(np.int32))
        sizes.append(size)
        ordered.append(0 if nominal else 1)
        meaning.append(values)

    def branch(g: int, chosen: list[int], left: Draft, right: Draft) -> Draft:
        if not ordered[g]:
            return DraftBranch(
                split=Subset(feature=columns[g], codes=tuple(int(meaning[g][a]) for a in chosen)),
                left=left,
                right=right,
            )
        if 0 in chosen:
            cut = float(meaning[g][max(chosen)])
            return DraftBranch(split=Threshold(feature=columns[g], threshold=cut), left=left, right=right)
        cut = float(meaning[g][min(chosen) - 1])
        return DraftBranch(split=Threshold(feature=columns[g], threshold=cut), left=right, right=left)

    return Groups(
        cat=np.ascontiguousarray(np.column_stack(codes)) if codes else np.zeros((len(problem.y), 0), np.int32),
        y=problem.y.astype(np.int32),
        w=problem.row_weights,
        sizes=np.asarray(sizes, np.int64),
        ordered=np.asarray(ordered, np.int64),
        n_classes=problem.n_classes,
        card=card or 0,
        branch=branch,
    )


def _edges(values: np.ndarray, bins: int) -> np.ndarray:
    """Upper ends of all bins but the last: quantiles, merged where equal; bins are closed on the right."""
    quantiles = np.unique(np.quantile(values, np.arange(1, bins) / bins, method="inverted_cdf"))
    return quantiles[quantiles < values.max()] if len(values) else quantiles


def _majority(problem: Problem) -> float:
    return float(np.bincount(problem.y, weights=problem.row_weights).max() / problem.n)


METHOD = Method(
    id="odt",
    title="ODT, subsets of categories",
    summary="Optimal trees on a fixed shape whose questions are subsets: 'married or widowed', or thresholds between bins.",
    paper="Günlük, Kalagnanam, Li, Menickelly & Scheinberg (2019)",
    guarantee=Guarantee.TREE,
    splits=("subset", "threshold"),
    size_hint="Made for columns with up to about 15 categories and some thousand rows; depth 2 in seconds, depth 3 for smaller data.",
    claim="Optimal over all trees of the topology with subset questions, on the training rows.",
    parameters=(
        having(DEPTH, default=2, maximum=4, help="Questions on the way to a leaf; 'topology' overrides it."),
        Parameter(
            name="topology", type="text", default="", label="Topology",
            help="depth-2, depth-2.5, depth-3, imbalanced, or brackets such as [[..][..]]; empty: complete to the depth.",
        ),
        Parameter(
            name="max_card", type="integer", default=0, minimum=0, maximum=62, label="Largest subset",
            help="A subset, or its complement, has at most this many categories; 0: any.",
        ),
        Parameter(
            name="bins", type="integer", default=10, minimum=2, maximum=60, flag=True, label="Bins",
            help="Numeric columns are cut at this many quantiles.", advanced=True,
        ),
        *COMMON,
    ),
    solve=solve,
)  # fmt: skip
