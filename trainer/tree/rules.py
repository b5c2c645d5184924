"""A tree as a list of rules, one for each leaf, that give its answers when the first that fits is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trainer.tree.nodes import Tree
from trainer.tree.splits import Condition


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The conditions on the way to a leaf, its class, the training rows that reach it and how many have its class.

    `words` has the questions on the way with their answers, as the tree shows them.
    """

    conditions: tuple[Condition, ...]
    label: str
    rows: int
    correct: int
    leaf: int
    words: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The rule as `rules --json` prints it."""
        return {
            "conditions": [condition.to_json() for condition in self.conditions],
            "class": self.label,
            "rows": self.rows,
            "correct": self.correct,
            "leaf": self.leaf,
            "words": list(self.words),
        }


def rules_of(tree: Tree) -> list[Rule]:
    """The rules in the order of the text: the leaves of "yes" before those of "no".

    The order counts: "no" to a bucket is "below or above", which is not a condition, and holds for the rows that the rules
    of "yes" left over.
    """
    rules: list[Rule] = []
    stack: list[tuple[int, tuple[Condition, ...], tuple[str, ...]]] = [(0, (), ())]
    while stack:
        node, conditions, words = stack.pop()
        v = tree.nodes[node]
        if v.split is None:
            rules.append(
                Rule(
                    conditions=conditions, label=tree.classes[v.label], rows=v.rows, correct=v.counts[v.label],
                    leaf=v.id, words=words,
                )
            )  # fmt: skip
            continue
        question = v.split.text(tree.schema) + v.split.empty_note()
        for child, left, answer in ((v.right, False, "no"), (v.left, True, "yes")):
            more = v.split.conditions(tree.schema, left)
            stack.append((child, conditions + more, (*words, f"{question}? {answer}")))
    return rules
