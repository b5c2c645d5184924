"""Describe the differences between two trees in words."""

from __future__ import annotations

from collections.abc import Iterable

from trainer.table import EmptySide
from trainer.tree.describe import split_text
from trainer.tree.nodes import Tree
from trainer.tree.numbers import count_words, label

MOST_NAMED = 5  # limit on the columns that are named


def tree_changes(old: Tree, new: Tree) -> list[str]:
    """Return the differences of `new` from `old` as clauses with a verb, the most important first.

    The list is empty if questions, answers and sides of empty cells are the same.
    """
    if _rules(old) == _rules(new):
        return [] if _empty_sides(old) == _empty_sides(new) else ["treats empty cells in another way"]
    changes = _root_changes(old, new)
    before = _column_names(old)
    after = _column_names(new)
    if added := [name for name in after if name not in {*before, *_root_names(new)}]:
        changes.append(f"also asks {_name_list(added)}")
    if after and (removed := [name for name in before if name not in {*after, *_root_names(old)}]):
        changes.append(f"no longer asks {_name_list(removed)}")
    if old.n_leaves != new.n_leaves:
        number = count_words(old.n_leaves, "leaf", "leaves").split()[0]
        changes.append(f"has {count_words(new.n_leaves, 'leaf', 'leaves')} instead of {number}")
    if changes:
        return changes
    questions = _questions(new)
    other = len(questions - _questions(old))
    if other:
        return [f"has {other} of {count_words(len(questions), 'question')} that the version before did not ask"]
    return ["gives other answers to the same questions"]


def _rules(tree: Tree, node: int = 0) -> list[str]:
    """Return questions and answers in preorder, without the rows, which differ after each training."""
    v = tree.nodes[node]
    if v.split is None:
        return [f"answer {tree.classes[v.label]}"]
    return [split_text(v.split, tree.schema), *_rules(tree, v.left), *_rules(tree, v.right)]


def _empty_sides(tree: Tree, node: int = 0) -> list[tuple[EmptySide, list[float | None]]]:
    """Return where each question sends empty cells, in preorder, and the values that sums read in place of them."""
    v = tree.nodes[node]
    if v.split is None:
        return []
    fills = [tree.schema[j].fill for j in v.split.used] if v.split.missing is EmptySide.FILL else []
    return [(v.split.missing, fills), *_empty_sides(tree, v.left), *_empty_sides(tree, v.right)]


def _root_changes(old: Tree, new: Tree) -> list[str]:
    before = _root_names(old)
    after = _root_names(new)
    if not after:
        return ["asks nothing: one answer for all rows"] if before else []
    if not before:
        return [f"asks {_name_list(after)} at the root instead of giving one answer to all rows"]
    if before != after:
        return [f"asks {_name_list(after)} instead of {_name_list(before)} at the root"]
    texts = [split_text(tree.nodes[0].split, tree.schema) for tree in (old, new) if tree.nodes[0].split is not None]
    return [] if texts[0] == texts[1] else [f"asks “{texts[1]}” instead of “{texts[0]}” at the root"]


def _root_names(tree: Tree) -> list[str]:
    split = tree.nodes[0].split
    return [] if split is None else [tree.schema[j].name for j in split.used]


def _column_names(tree: Tree) -> list[str]:
    return [tree.schema[j].name for j in tree.used_columns]


def _questions(tree: Tree) -> set[str]:
    return {split_text(v.split, tree.schema) for v in tree.branches if v.split is not None}


def _name_list(names: Iterable[str]) -> str:
    shown = [label(name) for name in names]
    more = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
    return ", ".join(shown[:MOST_NAMED]) + more
