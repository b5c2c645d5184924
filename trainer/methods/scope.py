"""Which trees a claim is about, in one sentence made in one place: the space of the method, and each restriction in its own words.

`all trees with depth ≤ 4, 36 thresholds (4 per column), at least 10 rows in a leaf, recall of yes ≥ 0.9`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from trainer.certificate import Guarantee
from trainer.data.encoding import Test
from trainer.data.problem import Problem
from trainer.methods.base import Method, Settings
from trainer.table import ColumnKind

LEAD = {
    Guarantee.TREE: "all trees with",
    Guarantee.SPLITS: "for each question that is marked as proved, all questions on at most two columns, in a tree with",
    Guarantee.HEURISTIC: "one tree, built step by step, with",
}


def scope_of(method: Method, problem: Problem, settings: Settings, space: str = "", wishes: Sequence[str] = ()) -> str:
    """The sentence; `space` replaces the method's own words about its questions if it knows them only after the search.

    `wishes` come from the workbench, as they are written.
    """
    own = space or (method.space(problem, settings) if method.space is not None else "")
    if not own and (
        not _restrictions(method, settings) or method.unsearched(problem, settings)
    ):  # nothing was searched
        own = "no question"
    return scope_sentence(method, settings, own, wishes)


def scope_sentence(method: Method, settings: Settings, space: str, wishes: Sequence[str] = ()) -> str:
    """Return the sentence from the words about the questions, `space`, and the restrictions of the settings."""
    parts = [*_restrictions(method, settings), *(f"the wish '{wish}'" for wish in wishes)]
    first = 1 if parts and parts[0].startswith("depth") else 0
    return f"{LEAD[method.guarantee]} {', '.join([*parts[:first], *([space] if space else []), *parts[first:]])}"


def _restrictions(method: Method, settings: Settings) -> list[str]:
    return [words for p in method.parameters if p.restricts is not None for words in p.restricts(settings)]


def count_noun(n: int, singular: str, plural: str = "") -> str:
    """1 threshold, 2 thresholds."""
    return f"{n} {singular if n == 1 else plural or singular + 's'}"


def binary_space(problem: Problem, settings: Settings) -> str:
    """The questions of the binary encoding, counted."""
    # a question with the empty cells on either side counts once
    features = [f for f in problem.binary.features if f.empty != 1.0]
    columns = problem.table.columns
    plain = {
        j
        for j, c in enumerate(columns)
        if c.kind is not ColumnKind.CATEGORICAL and np.isin(c.values[~c.missing], (0.0, 1.0)).all()
    }
    found = []
    for test, word in ((Test.ABOVE, "threshold"), (Test.INTERVAL, "interval")):
        own = [f.column for f in features if f.test is test and f.column not in plain]
        if own:
            sizes = sorted(Counter(own).values())
            each = f"{sizes[0]}" if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
            found.append(f"{count_noun(len(own), word)} ({each} per column)")
    if special := sum(f.test is Test.SPECIAL for f in features):
        found.append(count_noun(special, "special value"))
    if levels := sum(f.test is Test.LEVEL for f in features):
        found.append(count_noun(levels, "category", "categories"))
    if truths := sum(f.column in plain for f in features):
        found.append(count_noun(truths, "yes/no column"))
    return ", ".join([*found, *_empty_words(problem)]) or "no question"


def numeric_space(problem: Problem, settings: Settings) -> str:
    """All thresholds, and single categories."""
    numeric = sum(c.kind is not ColumnKind.CATEGORICAL for c in problem.table.columns)
    others = len(problem.table.columns) - numeric
    found = [f"all thresholds of {count_noun(numeric, 'numeric column')}"] if numeric else []
    found += [f"single categories of {count_noun(others, 'other column')}"] if others else []
    return ", ".join([*found, *_empty_words(problem)])


def _empty_words(problem: Problem) -> list[str]:
    """Return what the searches over questions do with empty cells, as a list of at most one text."""
    number = sum(bool(c.missing.any()) for c in problem.table.columns)
    return [f"empty cells of {count_noun(number, 'column')} on either side or asked about"] if number else []
