"""Describe the scope of a claim: the search space and all restrictions.

`all trees with depth ≤ 4, 36 thresholds (4 per column), at least 10 rows in a leaf, recall of yes ≥ 0.9`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from trainer.certificate import Guarantee
from trainer.data.encoding import Test
from trainer.data.problem import Problem
from trainer.methods.base import Method, Settings
from trainer.table import ColumnKind, distinct_bits

LEAD = {
    Guarantee.TREE: "all trees with",
    Guarantee.SPLITS: "for each question that is marked as proved, all questions on at most two columns, in a tree with",
    Guarantee.SUBTREES: "for each small subtree that is counted as proved, all subtrees in its place, in a tree with",
    Guarantee.HEURISTIC: "one tree, built step by step, with",
}
ANY_DEPTH_LEAD = "all trees of any depth with"


def scope_of(method: Method, problem: Problem, settings: Settings, space: str = "", wishes: Sequence[str] = ()) -> str:
    """Return the scope of a claim.

    `space` replaces the method's search space, if it is known only after the search. `wishes` are constraints of the workbench, as written.
    """
    space_text = space or (method.space(problem, settings) if method.space is not None else "")
    # without questions, the method searched nothing
    if not space_text and (not _restrictions(method, settings) or method.unsearched(problem, settings)):
        space_text = "no question"
    return scope_sentence(method, settings, space_text, wishes)


def scope_sentence(method: Method, settings: Settings, space: str, wishes: Sequence[str] = ()) -> str:
    """Return the sentence made of the search space and the restrictions of the settings."""
    parts = [*_restrictions(method, settings), *(f"the wish '{wish}'" for wish in wishes)]
    first = 1 if parts and parts[0].startswith("depth") else 0
    lead = LEAD[method.guarantee] if settings.get("depth", 0) is not None else ANY_DEPTH_LEAD
    return f"{lead} {', '.join([*parts[:first], *([space] if space else []), *parts[first:]])}"


def _restrictions(method: Method, settings: Settings) -> list[str]:
    return [words for p in method.parameters if p.restricts is not None for words in p.restricts(settings)]


def count_noun(n: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun: 1 threshold, 2 thresholds."""
    return f"{n} {singular if n == 1 else plural or singular + 's'}"


def binary_space(problem: Problem, settings: Settings) -> str:
    """Return the search space of the binary encoding, with counts."""
    # count features once if they differ only in the side of empty cells
    features = [f for f in problem.binary.features if f.empty != 1.0]
    columns = problem.table.columns
    plain = {
        j for j, c in enumerate(columns) if c.kind is not ColumnKind.CATEGORICAL and distinct_bits(c.cells) is not None
    }
    texts = []
    for test, word in ((Test.ABOVE, "threshold"), (Test.INTERVAL, "interval")):
        threshold_columns = [f.column for f in features if f.test is test and f.column not in plain]
        if threshold_columns:
            sizes = sorted(Counter(threshold_columns).values())
            each = f"{sizes[0]}" if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
            texts.append(f"{count_noun(len(threshold_columns), word)} ({each} per column)")
    if special := sum(f.test is Test.SPECIAL for f in features):
        texts.append(count_noun(special, "special value"))
    if levels := sum(f.test is Test.LEVEL for f in features):
        texts.append(count_noun(levels, "category", "categories"))
    if truths := sum(f.column in plain for f in features):
        texts.append(count_noun(truths, "yes/no column"))
    return ", ".join([*texts, *_empty_words(problem)]) or "no question"


def numeric_space(problem: Problem, settings: Settings) -> str:
    """Return the search space of all thresholds and single categories."""
    numeric = sum(c.kind is not ColumnKind.CATEGORICAL for c in problem.table.columns)
    others = len(problem.table.columns) - numeric
    texts = [f"all thresholds of {count_noun(numeric, 'numeric column')}"] if numeric else []
    texts += [f"single categories of {count_noun(others, 'other column')}"] if others else []
    return ", ".join([*texts, *_empty_words(problem)])


def _empty_words(problem: Problem) -> list[str]:
    """Return the treatment of empty cells, as a list of at most one text."""
    number = sum(c.has_missing for c in problem.table.columns)
    return [f"empty cells of {count_noun(number, 'column')} on either side or asked about"] if number else []
