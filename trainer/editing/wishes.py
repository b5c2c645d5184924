"""Parse wishes: a user's constraints on a tree.

A wish is a text, or an item of a partial tree. A place is a string of y and n, the answers from the root; the empty
string is the root. `ask` demands a split at its place; the other wishes apply only if the tree has their place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from trainer.data.problem import Problem
from trainer.editing.questions import Questions
from trainer.errors import ParameterError, closest, list_names, nearest
from trainer.table import MISSING_CATEGORY, ColumnKind, ColumnSchema, EmptySide
from trainer.tree.shapes import LabelledShape
from trainer.tree.splits import Interval, Missing, NumericSplit, Split, Subset, Threshold

Verb = Literal["ask", "forbid", "avoid", "together", "leaf", "depth", "held"]
VERBS = ("ask", "forbid", "avoid", "together", "leaf", "depth")
MOST_WISHES = 100
MOST_PLACE = 20
GRAMMAR = (
    "A wish is 'ask PLACE COLUMN <= VALUE' (and 'empty yes' or 'empty no'), 'ask PLACE COLUMN is empty', 'ask PLACE COLUMN in A|B', 'ask PLACE COLUMN', 'forbid PLACE COLUMN' (there and below), "
    "'avoid PLACE COLUMN' (there only), 'together PLACE COLUMN in A|B', 'leaf PLACE [CLASS]' or 'depth PLACE N'; a place is 'root' or the answers from the root, as 'yn'."
)


@dataclass(frozen=True)
class Item:
    """A wish or a held question, relative to a node above it: `place` is the remaining path.

    `number` is the question of `ask` and `held` (-1: any about `column`), the class of `leaf` (-1: its majority), the height of
    `depth`, and the group of categories of `together` (`Questions.category_group`). `other` is a second question that satisfies an
    `ask` without a side for empty cells (-1: none).
    """

    verb: Verb
    place: str
    number: int = -1
    column: int = -1
    other: int = -1

    @property
    def questions(self) -> tuple[int, ...]:
        """The questions that satisfy an `ask`; empty if any about the column does."""
        return tuple(q for q in (self.number, self.other) if q >= 0)


Items = frozenset[Item]


@dataclass(frozen=True)
class EditConstraint:
    """A wish with its text."""

    text: str
    item: Item

    @property
    def place(self) -> str:
        return self.item.place


@dataclass(frozen=True)
class ParsedEdit:
    """A parsed wish: `number` is the class of `leaf` or the height of `depth`."""

    verb: Verb
    place: str
    column: int = -1
    split: Split | None = None
    number: int = -1


def read_wish(text: str, schema: Sequence[ColumnSchema], classes: Sequence[str]) -> ParsedEdit:
    """Parse a wish by the names of columns and classes alone.

    Raises
    ------
    ParameterError
        If the text is not a wish, or names a column, category or class that does not exist.
    """
    words = text.split(None, 2)
    if len(words) < 2 or words[0] not in VERBS:
        raise _bad(text, f"{GRAMMAR} {_near_columns(text, schema)}")
    place = _place(words[1], text)
    rest = words[2].strip() if len(words) == 3 else ""
    if words[0] == "ask":
        column, split = _question(rest, schema, text)
        return ParsedEdit("ask", place, column, split)
    if words[0] == "together":
        column, split = _question(rest, schema, text)
        if split is None or len(split.among) < 2:
            raise _bad(text, "'together' needs two or more categories, as in 'together root COLUMN in A|B'.")
        return ParsedEdit("together", place, column, split)
    if words[0] in ("forbid", "avoid"):
        verb: Verb = "forbid" if words[0] == "forbid" else "avoid"
        return ParsedEdit(verb, place, _column(rest, schema, text))
    if words[0] == "leaf":
        return ParsedEdit("leaf", place, number=_label(rest, classes, text))
    if not re.fullmatch(r"\d{1,4}", rest):
        raise _bad(text, "'depth' needs a whole number of questions, as in 'depth y 1'.")
    return ParsedEdit("depth", place, number=int(rest))


def parse(text: str, questions: Questions) -> EditConstraint:
    """Parse a wish and find its questions. Raises ParameterError with a sentence on the mistake."""
    wish = read_wish(text, questions.problem.table.schema, questions.problem.labels.classes)
    number = wish.number
    other = -1
    if wish.split is not None and wish.verb == "together":
        number = questions.category_group(wish.split)
    elif wish.split is not None:
        number, *rest = (questions.find(split) for split in _with_empty_sides(wish.split, questions.problem, text))
        other = rest[0] if rest else -1
    return EditConstraint(text.strip(), Item(wish.verb, wish.place, number, wish.column, other))


def _with_empty_sides(split: Split, problem: Problem, text: str) -> list[Split]:
    """Return the question with each side of empty cells that a wish leaves open. Raises ParameterError if no cell is empty."""
    column = (problem.source or problem).table.columns[split.used[0]]
    if not isinstance(split, NumericSplit):
        return [split]
    if not column.has_missing:
        if split.missing is EmptySide.REFUSE:
            return [split]
        raise _bad(text, f"No training row has an empty cell in '{column.name}'. Leave out 'empty yes' or 'empty no'.")
    if split.missing is EmptySide.REFUSE:
        return [split.with_empty(side) for side in (EmptySide.RIGHT, EmptySide.LEFT)]
    return [split]


def parse_all(texts: Sequence[str], questions: Questions) -> tuple[EditConstraint, ...]:
    """Parse wishes and drop duplicates."""
    if len(texts) > MOST_WISHES:
        raise ParameterError({"wish": f"{len(texts)} wishes are too many. Give at most {MOST_WISHES}."})
    return tuple({wish.item: wish for wish in (parse(text, questions) for text in texts)}.values())


def held_questions(wishes: Sequence[EditConstraint], questions: Questions) -> Items:
    """Return the held questions at their places; they stay available without their wish."""
    return frozenset(
        Item("held", w.place, q, w.item.column)
        for w in wishes
        if w.item.verb == "ask"
        for q in w.item.questions
        if questions.is_foreign(q)
    )


def banned_at(items: Iterable[Item]) -> set[int]:
    """Return the columns and category groups that the items at a node exclude at and below it."""
    return {i.column if i.verb == "forbid" else i.number for i in items if i.verb in ("forbid", "together")}


def items_below(items: Items, letter: str) -> Items:
    """Return the items of the child `letter`, relative to it."""
    return frozenset(replace(i, place=i.place[1:]) for i in items if i.place and i.place[0] == letter)


def satisfies(tree: LabelledShape, items: Items, questions: Questions, banned: frozenset[int] = frozenset()) -> bool:
    """Return whether the tree satisfies all wishes; a leaf without a class has its majority, and held questions demand nothing.

    A leaf wish with a class needs a leaf with exactly this class.
    """
    items_here = [i for i in items if not i.place]
    banned = banned | banned_at(items_here)
    if any(i.verb == "depth" and _height(tree) > i.number for i in items_here):
        return False
    if not isinstance(tree, tuple):
        classes = {i.number for i in items_here if i.verb == "leaf"} - {-1}
        return not any(i.verb == "ask" for i in items) and (not classes or classes == {tree})
    if any(i.verb == "leaf" for i in items_here) or questions.is_barred(tree[0], banned):
        return False
    for i in items_here:
        if i.verb == "avoid" and i.column == questions.columns[tree[0]]:
            return False
        if i.verb == "ask" and (i.column != questions.columns[tree[0]] or tree[0] not in (i.questions or tree[:1])):
            return False
    return satisfies(tree[1], items_below(items, "y"), questions, banned) and satisfies(
        tree[2], items_below(items, "n"), questions, banned
    )


def _height(tree: LabelledShape) -> int:
    return 1 + max(_height(tree[1]), _height(tree[2])) if isinstance(tree, tuple) else 0


def _bad(text: str, reason: str) -> ParameterError:
    return ParameterError({"wish": f"We did not understand '{text[:120]}'. {reason}"})


def _place(word: str, text: str) -> str:
    if word == "root":
        return ""
    if not re.fullmatch(f"[yn]{{1,{MOST_PLACE}}}", word):
        raise _bad(text, f"'{word[:40]}' is not a place. Write 'root', or the answers from the root as in 'yn'.")
    return word


def place_name(place: str) -> str:
    """Return a place in the grammar of wishes."""
    return place or "root"


def _column(name: str, schema: Sequence[ColumnSchema], text: str) -> int:
    names = [column.name for column in schema]
    if name not in names:
        near = closest(name, names)
        raise _bad(text, f"There is no column '{name[:80]}'.{near} Columns: {list_names(names)}.")
    return names.index(name)


def _near_columns(text: str, schema: Sequence[ColumnSchema]) -> str:
    """Name the columns whose names are similar to words of a text, or the first columns."""
    names = [column.name for column in schema]
    near = dict.fromkeys(filter(None, (nearest(word, names) for word in text.split()[:20])))
    if near:
        return f"Nearest columns: {list_names(list(near), most=3)}."
    return f"Columns: {list_names(names)}."


def _label(name: str, classes: Sequence[str], text: str) -> int:
    if not name:
        return -1
    if name not in classes:
        raise _bad(text, f"There is no class '{name[:80]}'.{closest(name, classes)} Classes: {list_names(classes)}.")
    return classes.index(name)


def _question(rest: str, schema: Sequence[ColumnSchema], text: str) -> tuple[int, Split | None]:
    """Parse a column and a question, or None for any question about it; column names may have spaces and signs."""
    names = [column.name for column in schema]
    if rest in names:
        return names.index(rest), None
    for column in sorted(range(len(names)), key=lambda j: -len(names[j])):
        if rest.startswith(names[column] + " "):
            tail = rest[len(names[column]) :].strip()
            if tail == "is empty":
                return column, _is_empty(column, schema[column], text)
            for sign, read in (("<=", _threshold), ("in ", _subset), ("between ", _interval)):
                if tail.startswith(sign):
                    return column, read(column, tail[len(sign) :].strip(), schema[column], text)
    _column(re.split(r" <=| in | between | is empty$", rest)[0], schema, text)
    raise _bad(text, GRAMMAR)


def _is_empty(column: int, schema: ColumnSchema, text: str) -> Split:
    if schema.kind is ColumnKind.CATEGORICAL:
        raise _bad(text, f"'{schema.name}' has categories: write '{schema.name} in {MISSING_CATEGORY}'.")
    return Missing(feature=column)


def _empty_side(tail: str) -> tuple[str, EmptySide]:
    """Return the text of a question without its words on empty cells, and the side that they name."""
    for word, side in ((" empty yes", EmptySide.LEFT), (" empty no", EmptySide.RIGHT)):
        if tail.endswith(word):
            return tail.removesuffix(word).strip(), side
    return tail, EmptySide.REFUSE


def _number(word: str, text: str) -> float:
    try:
        value = float(word)
    except ValueError:
        raise _bad(text, f"'{word[:40]}' is not a number. Write a number such as 5.5.") from None
    if math.isnan(value):
        raise _bad(text, f"'{word[:40]}' is not a number. Write a number such as 5.5.")
    return value


def _threshold(column: int, tail: str, schema: ColumnSchema, text: str) -> Split:
    if schema.kind is ColumnKind.CATEGORICAL:
        raise _bad(text, f"'{schema.name}' has categories: write '{schema.name} in A|B'.")
    number, side = _empty_side(tail)
    value = _number(number, text)
    if math.isinf(value):
        raise _bad(text, f"'{number[:40]}' is not a finite number. Write a number such as 5.5.")
    return Threshold(feature=column, threshold=value, missing=side)


def _interval(column: int, tail: str, schema: ColumnSchema, text: str) -> Split:
    ends, side = _empty_side(tail)
    low, word, high = ends.partition(" and ")
    if not word or schema.kind is ColumnKind.CATEGORICAL:
        raise _bad(
            text, "'between' needs a column of numbers and two ends: 'COLUMN between LOW and HIGH' is LOW < x <= HIGH."
        )
    return Interval(feature=column, low=_number(low, text), high=_number(high, text), missing=side)


def _subset(column: int, tail: str, schema: ColumnSchema, text: str) -> Split:
    if schema.kind is not ColumnKind.CATEGORICAL:
        if text.split(None, 1)[0] == "together":
            raise _bad(text, f"'{schema.name}' has numbers, but 'together' needs a column of categories.")
        raise _bad(text, f"'{schema.name}' has numbers: write '{schema.name} <= VALUE'.")
    names = [tail] if tail in schema.categories else [word.strip() for word in tail.split("|")]
    for name in names:
        if name not in schema.categories:
            raise _bad(
                text,
                f"'{schema.name}' has no category '{name[:80]}'.{closest(name, schema.categories)} "
                f"Categories: {list_names(schema.categories)}.",
            )
    return Subset(feature=column, codes=tuple(sorted({schema.categories.index(name) for name in names})))
