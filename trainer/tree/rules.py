"""Turn a tree into a list of rules, one for each leaf.

The first rule that fits gives the answer of the tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trainer.tree.nodes import Tree
from trainer.tree.splits import Condition


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The conditions on the path to a leaf, its class, and its training rows with the correct ones.

    `words` has the questions on the path with their answers, as the tree shows them.
    """

    conditions: tuple[Condition, ...]
    label: str
    rows: int
    correct: int
    leaf: int
    words: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the rule as `rules --json` prints it."""
        return {
            "conditions": [condition.to_json() for condition in self.conditions],
            "class": self.label,
            "rows": self.rows,
            "correct": self.correct,
            "leaf": self.leaf,
            "words": list(self.words),
        }


def rules_of(tree: Tree) -> list[Rule]:
    """Return one rule per leaf, with the leaves under "yes" before those under "no".

    Each rule applies only to rows that no earlier rule fits. That is why "no" to a bucket, which means "below
    or above", needs no condition.
    """
    rules: list[Rule] = []
    stack: list[tuple[int, tuple[Condition, ...], tuple[str, ...]]] = [(0, (), ())]
    while stack:
        node, conditions, words = stack.pop()
        v = tree.nodes[node]
        if v.split is None:
            rules.append(
                Rule(
                    conditions=conditions,
                    label=tree.classes[v.label],
                    rows=v.rows,
                    correct=v.counts[v.label],
                    leaf=v.id,
                    words=words,
                )
            )
            continue
        question = v.split.text(tree.schema) + v.split.empty_note()
        for child, left, answer in ((v.right, False, "no"), (v.left, True, "yes")):
            more = v.split.conditions(tree.schema, left)
            stack.append((child, conditions + more, (*words, f"{question}? {answer}")))
    return rules
