"""Find a minimal set of conflicting wishes and explain the conflict."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from trainer.editing.prefix import Prefix, Spot, Topology
from trainer.editing.space import DemandedQuestion, EditingSpace, SearchStopped
from trainer.editing.wishes import EditConstraint, Items, items_below, place_name


class Feasible:
    """A cached test of whether any tree satisfies a set of wishes."""

    def __init__(self, prefix: Prefix) -> None:
        self.prefix = prefix
        self.memo: dict[tuple[int, bytes, frozenset[int], Items, Topology | None], bool] = {}

    def __call__(self, items: Items) -> bool:
        """Return True if a tree of the space satisfies the wishes. Raises SearchStopped."""
        return self._is_feasible(self.prefix.top(items))

    def _is_feasible(self, spot: Spot) -> bool:
        spot = self.prefix.settle(spot)
        items_here = [i for i in spot.items if not i.place]
        leaf = {i.number for i in items_here if i.verb == "leaf"}
        if not any(i.verb == "ask" for i in spot.items):
            return len(leaf - {-1}) < 2 or self._any_question(spot)
        if leaf or not self._asks_are_possible(spot):
            return False
        return self._any_question(spot)

    def _any_question(self, spot: Spot) -> bool:
        if any(i.verb == "leaf" and not i.place for i in spot.items):
            return False
        key = (spot.height, spot.rows.tobytes(), spot.banned, spot.items, spot.topology)
        if key not in self.memo:
            if self.prefix.space.stopped():
                raise SearchStopped
            self.memo[key] = any(self._is_feasible_with(spot, q) for q in self.prefix.candidates(spot))
        return self.memo[key]

    def _is_feasible_with(self, spot: Spot, question: int) -> bool:
        sides = (self.prefix._sides(spot, question, way) for way in range(len(self.prefix.ways(spot))))
        return any(all(self._is_feasible(side) for side in one.spots) for one in sides)

    def _asks_are_possible(self, spot: Spot) -> bool:
        """Return whether each demanded question separates these rows, is the only one at its place, and fits into the height."""
        space = self.prefix.space
        asks = [i for i in spot.items if i.verb == "ask"]
        questions_by_place: dict[str, frozenset[int]] = {}
        for ask in asks:
            if ask.questions:
                questions_by_place[ask.place] = questions_by_place.get(ask.place, frozenset(ask.questions)) & frozenset(
                    ask.questions
                )
        if len({i.place for i in asks}) < len({(i.place, i.column) for i in asks}) or not all(
            questions_by_place.values()
        ):
            return False
        for ask in asks:
            if len(ask.place) >= spot.height or ask.column in spot.banned | space.banned:
                return False
            questions = ask.questions or questions_about(self.prefix, spot, ask.column)
            if not any(space.separates(spot.rows, q) for q in questions):
                return False
        return True


def questions_about(prefix: Prefix, spot: Spot, column: int) -> list[int]:
    """Return the questions on a column that separate the rows of a place, and the held ones."""
    held_numbers = [i.number for i in spot.items if i.verb == "held" and i.column == column]
    return [
        *prefix.space.candidates(spot.rows, spot.banned, [DemandedQuestion(column)], alike=False)[:1],
        *held_numbers,
    ]


def minimal_conflict(
    feasible: Callable[[Items], bool], wishes: Sequence[EditConstraint], stay: Items
) -> tuple[EditConstraint, ...]:
    """Return a minimal conflict: no tree satisfies these wishes, but without any one of them a tree exists (deletion filter)."""
    conflict = list(wishes)
    for wish in wishes:
        rest = [w for w in conflict if w is not wish]
        if not feasible(frozenset(w.item for w in rest) | stay):
            conflict = rest
    return tuple(conflict)


def reason(prefix: Prefix, conflict: Sequence[EditConstraint]) -> str:
    """Explain a conflict in one sentence, with numbers if the wishes give them."""
    questions = prefix.space.questions
    space = prefix.space
    asks = [w.item for w in conflict if w.item.verb == "ask"]
    deepest = max(asks, key=lambda i: len(i.place), default=None)
    if deepest is not None and len(deepest.place) >= space.depth:
        room = f"{space.depth} question{'s' if space.depth != 1 else ''}"
        return f"A question at {place_name(deepest.place)} is number {len(deepest.place) + 1} on its path; trees have at most {room} on a path."
    if not prefix.admits_branches({i.place for i in asks}):
        return "No tree of the topology has questions at all these places."
    twice = [w for w in conflict if w.item.verb == "ask" and sum(i.place == w.place for i in asks) > 1]
    if len(twice) > 1:
        return f"'{twice[0].text}' and '{twice[1].text}' ask two questions at one place."
    for item in asks:
        if item.column in space.banned:
            return f"The column '{space.problem.table.names[item.column]}' may not be asked at all."
        conflicting = [w for w in conflict if w.item.verb in ("leaf", "depth") and item.place.startswith(w.place)]
        if conflicting:
            return f"A tree that asks at {place_name(item.place)} cannot keep '{conflicting[0].text}'."
        conflicting = [w for w in conflict if w.item.verb == "forbid" and item.place.startswith(w.place)]
        if conflicting and all(w.item.column == item.column for w in conflicting):
            return f"'{conflicting[0].text}' forbids the column that the question at {place_name(item.place)} must ask about."
        conflicting = [w for w in conflict if w.item.verb == "avoid" and w.place == item.place]
        if conflicting:
            return f"'{conflicting[0].text}' rules out the column that the question at {place_name(item.place)} must ask about."
        kept_together = [w for w in conflict if w.item.verb == "together" and item.place.startswith(w.place)]
        separated = [
            w
            for w in kept_together
            if item.number >= 0 and questions.is_barred(item.number, frozenset({w.item.number}))
        ]
        if separated:
            return f"The question '{questions.text(item.number)}' separates categories that '{separated[0].text}' keeps together."
    return _rows_reason(prefix, conflict) if asks else "A tree can keep each wish alone, but no tree keeps all of them."


def _rows_reason(prefix: Prefix, conflict: Sequence[EditConstraint]) -> str:
    """Explain a conflict by the number of rows at the place whose demanded question does not separate them."""
    space = prefix.space
    asks = sorted((w.item for w in conflict if w.item.verb == "ask"), key=lambda i: len(i.place))
    last = asks[-1]
    rows = space.all_rows
    place = ""
    items: Items = frozenset(asks)
    while place != last.place:
        questions_here = [i.number for i in items if not i.place and i.verb == "ask" and len(i.questions) == 1]
        if not questions_here:
            break
        letter = last.place[len(place)]
        rows = space.split(rows, questions_here[0])[0 if letter == "y" else 1]
        items = items_below(items, letter)
        place = place + letter
    arriving = _row_words(space, rows)
    column = space.problem.table.names[last.column]
    counts = np.sort(space.counts(rows))[::-1]
    if place != last.place:
        return f"Below {place_name(place)}, where {arriving} arrive, no question allows one about '{column}' at {place_name(last.place)}."
    what = (
        f"the question '{space.questions.text(last.number)}'" if last.number >= 0 else f"no question about '{column}'"
    )
    verb = "does not separate" if last.number >= 0 else "separates"
    source = space.problem.source
    copies_of_row = 1 if source is None or source.costs is None else source.costs.leaf_size(1)
    min_leaf = space.min_leaf // copies_of_row
    least = f" into sides of at least {min_leaf}" if min_leaf > 1 else ""
    pure = " (all of one class)" if source is None and len(counts) > 1 and counts[1] == 0 else ""
    return f"At {place_name(last.place)} {what} {verb} the {arriving}{pure} that arrive{least}."


def _row_words(space: EditingSpace, rows: np.ndarray) -> str:
    """Return the number of rows in words; only "rows" if the space counts weights, or copies of rows with costs."""
    if space.problem.source is not None or space.problem.weights is not None:
        return "rows"
    return f"{space.weight(rows):,} rows"
