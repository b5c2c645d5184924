"""Share data and sentences between all figures of a split."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from octweb.figures.split.impurity import gini_rows
from trainer.data.parsing.codes import codes_text, likely_codes
from trainer.dtypes import CodeArray, FloatArray
from trainer.table import ColumnKind
from trainer.tree.describe import split_text
from trainer.tree.nodes import Node, Tree
from trainer.tree.render.palette import short
from trainer.tree.splits import Split

SEPARATION = (
    (0.0, "fully separates"),
    (0.5, "mostly separates"),
    (0.95, "partly separates"),
)  # a split gets these words up to this share of remaining impurity


@dataclass(frozen=True, kw_only=True)
class SplitScene:
    """A branch node with its rows `X` (n, columns), their class codes `codes`, and the mask `left` of its split."""

    tree: Tree
    node: Node
    X: FloatArray
    codes: CodeArray
    left: np.ndarray

    def name(self, feature: int) -> str:
        column = self.tree.schema[feature]
        return f"{short(column.name, 40)} ({column.unit})" if column.unit else short(column.name, 40)

    @property
    def heads(self) -> tuple[str, str]:
        """Headings of both sides: answer and number of rows."""
        return side_heads(int(self.left.sum()), len(self.left))


def separation_words(scene: SplitScene) -> str:
    """State how well the split separates the classes. "" if all rows have one class.

    The measure is the share of the Gini impurity that remains.
    """
    classes = len(scene.tree.classes)
    before = gini_rows(scene.codes, np.ones(len(scene.codes), bool), classes)
    if not before:
        return ""
    left = gini_rows(scene.codes, scene.left, classes) / before
    names = [short(name, 24) for code, name in enumerate(scene.tree.classes) if (scene.codes == code).any()]
    what = f"“{names[0]}” from “{names[1]}”" if len(names) == 2 else "the classes"
    how = next((words for limit, words in SEPARATION if left <= limit), "hardly separates")
    return f"This question {how} {what}."


def codes_words(scene: SplitScene, feature: int) -> str:
    """State how many rows go to each side because their value is a declared or likely special value."""
    column = scene.tree.schema[feature]
    values = scene.X[:, feature]
    codes = _codes_here(scene, feature)
    sentences = []
    for answer, side in (("yes", scene.left), ("no", ~scene.left)):
        counts = {v: int(((values == v) & side).sum()) for v in codes}
        if rows := sum(counts.values()):
            text = codes_text({v: n for v, n in counts.items() if n})
            kind = "a special value" if column.special else "what may be a code"
            sentences.append(
                f"{rows_words(rows)} {'answers' if rows == 1 else 'answer'} {answer} because of {kind}: {text}."
            )
    return " ".join(sentences)


def undeclared_codes(scene: SplitScene, feature: int) -> tuple[float, ...]:
    """Return values of a column that look like special values. Empty if the user has declared any."""
    return () if scene.tree.schema[feature].special else tuple(_codes_here(scene, feature))


def weighed_codes_words(scene: SplitScene, features: Iterable[int]) -> str:
    """State how many rows have a declared or likely special value in a column of a weighted sum."""
    codes_by_feature = {f: codes for f in dict.fromkeys(features) if (codes := _codes_here(scene, f))}
    if not codes_by_feature:
        return ""
    with_codes = np.zeros(len(scene.X), bool)
    for feature, codes in codes_by_feature.items():
        with_codes |= np.isin(scene.X[:, feature], list(codes))
    kind = "a special value" if all(scene.tree.schema[f].special for f in codes_by_feature) else "what may be a code"
    where = f"{len(codes_by_feature)} columns"
    if len(codes_by_feature) == 1:
        (feature,) = codes_by_feature
        where = f"{short(scene.tree.schema[feature].name, 40)} ({codes_text(codes_by_feature[feature])})"
    rows = int(with_codes.sum())
    return f"{rows_words(rows)} {'has' if rows == 1 else 'have'} {kind} in {where}, and the sum weighs it as a number."


def _codes_here(scene: SplitScene, feature: int) -> dict[float, int]:
    """Count the rows of each declared special value or, if none is declared, of each likely one."""
    column = scene.tree.schema[feature]
    values = scene.X[:, feature]
    if column.kind is not ColumnKind.NUMERIC:
        return {}
    declared = {v: int((values == v).sum()) for v in column.special}
    return {v: n for v, n in declared.items() if n} if column.special else likely_codes(values)


def missing_words(values: FloatArray, split: Split) -> str:
    """State to which side rows with an empty cell go. "" if no cell is empty."""
    missing = int(np.isnan(values).sum())
    if not missing:
        return ""
    answer = "yes" if split.empty_goes_left else "no"
    return f"{rows_words(missing)} with an empty cell {'answers' if missing == 1 else 'answer'} {answer}."


def rule_words(scene: SplitScene) -> str:
    return split_text(scene.node.split, scene.tree.schema) if scene.node.split else ""


def side_heads(yes: int, rows: int) -> tuple[str, str]:
    return f"yes · {rows_words(yes)}", f"no · {rows_words(rows - yes)}"


def rows_words(n: int) -> str:
    return "1 row" if n == 1 else f"{n:,} rows"


def sentence(*parts: str) -> str:
    return " ".join(part for part in parts if part)
