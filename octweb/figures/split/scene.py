"""What every picture of a split needs: the branch with the rows that reach it, and the sentences below a picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from octweb.figures.split.impurity import gini_rows
from trainer.data.codes import codes_text, likely_codes
from trainer.dtypes import CodeArray, FloatArray
from trainer.table import Kind
from trainer.tree.describe import split_text
from trainer.tree.nodes import Node, Tree
from trainer.tree.picture.palette import short


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A branch of a tree with its rows `X` (n, columns), their classes `codes` and the side `left` each goes to."""

    tree: Tree
    node: Node
    X: FloatArray
    codes: CodeArray
    left: np.ndarray

    def name(self, feature: int) -> str:
        column = self.tree.schema[feature]
        return f"{short(column.name, 40)} ({column.unit})" if column.unit else short(column.name, 40)

    @property
    def head(self) -> str:
        yes = int(self.left.sum())
        return f"yes · {yes:,} rows | no · {len(self.left) - yes:,} rows"


def impurity_words(scene: Scene) -> str:
    classes = len(scene.tree.classes)
    before = gini_rows(scene.codes, np.ones(len(scene.codes), bool), classes)
    after = gini_rows(scene.codes, scene.left, classes)
    return f"Gini impurity in rows: {before:.1f} before, {after:.1f} after the split."


def codes_words(scene: Scene, feature: int) -> str:
    """How many rows answer as they do because their value is a code: one that was declared, or one that looks like it."""
    column, values = scene.tree.schema[feature], scene.X[:, feature]
    if column.kind is not Kind.NUMERIC:
        return ""
    declared = {v: int((values == v).sum()) for v in column.special}
    codes = {v: n for v, n in declared.items() if n} if column.special else likely_codes(values)
    said = []
    for answer, side in (("yes", scene.left), ("no", ~scene.left)):
        here = {v: int(((values == v) & side).sum()) for v in codes}
        if rows := sum(here.values()):
            shown = codes_text({v: n for v, n in here.items() if n})
            kind = "a special value" if column.special else "what may be a code"
            said.append(
                f"{rows_words(rows)} {'answers' if rows == 1 else 'answer'} {answer} because of {kind}: {shown}."
            )
    return " ".join(said)


def missing_words(values: FloatArray) -> str:
    missing = int(np.isnan(values).sum())
    return f"{rows_words(missing)} without a value answer no." if missing else ""


def rule_words(scene: Scene) -> str:
    return split_text(scene.node.split, scene.tree.schema) if scene.node.split else ""


def rows_words(n: int) -> str:
    return "1 row" if n == 1 else f"{n:,} rows"


def sentence(*parts: str) -> str:
    return " ".join(part for part in parts if part)
