"""The questions of `odt`: subsets of categories and ends of bins, about the columns that the claim names where the data chose them."""

from __future__ import annotations

import re

import numpy as np

from trainer.check.proof.model import Model, ModelTable, active_parameter
from trainer.check.proof.space.questions import bin_questions, matrix
from trainer.check.proof.subject import NoProof

MOST_SUBSETS = 1000
BEFORE = re.compile(
    r" columns, numeric ones in at most [0-9]+ bins(?: with empty cells on either side)?, no other columns than (?:those that a CART tree uses )?\("
)
MOST_WAYS = 5000


def chosen_columns(model: Model) -> list[bool] | None:
    """For each column whether the claim is about it, all True where nothing chose; None if the scope does not say so in one way only.

    A name may have a comma or a bracket in it, so that a list might be read in two ways.
    """
    if model["method"] != "odt" or active_parameter(model, "select") is None:
        return [True] * len(model["columns"])
    said = str(model["certificate"].get("scope") or "")
    start = BEFORE.search(said)
    if start is None:
        return None
    names = [str(column["name"]) for column in model["columns"]]
    text = said[start.end() :]

    def closed(end: int) -> bool:
        return text[end:] == ")" or text.startswith("), ", end)

    # lists that the text begins with, and where they end; those that a bracket closes
    ways = [(0, frozenset[int]())]
    listed = [frozenset[int]()] if closed(0) else []
    for j, name in enumerate(names):
        for at, way in list(ways):
            word = f", {name}" if way else name
            if text.startswith(word, at):
                ways.append((at + len(word), way | {j}))
                listed += [way | {j}] if closed(at + len(word)) else []
        if len(ways) > MOST_WAYS or len(listed) > 1:
            return None
    return [j in listed[0] for j in range(len(names))] if listed else None


def subsets(model: Model, rows: ModelTable, most: int = MOST_SUBSETS) -> tuple[np.ndarray, list[int]]:
    """The subsets of categories without the first one that occurs, in the order of their bits, and the ends of bins.

    With wishes the subsets with the first one as well, since it matters which side is called yes. Raises NoProof if there are more than `most`.
    """
    if (chosen := chosen_columns(model)) is None:
        raise NoProof("the scope does not say in one way only which columns the trees may ask")
    first = 0 if model["certificate"].get("wishes") else 1
    card = int(active_parameter(model, "max_card") or 0)
    made = list[np.ndarray]()
    asks = list[int]()
    for j in np.flatnonzero(chosen).tolist():
        values = rows.columns[j]
        levels = np.unique(rows.columns[j])
        if model["columns"][j]["kind"] != "categorical":
            made += bin_questions(values, int(model["parameters"]["bins"]))
        elif (k := len(levels)) <= 10 or 1 << (k - first) <= most:
            for mask in range(1, (1 << (k - first)) - 1 + first):
                some = [levels[i + first] for i in range(k - first) if mask >> i & 1]
                if not card or min(len(some), k - len(some)) <= card:
                    made.append(np.isin(values, some))
        else:
            raise NoProof(f"column '{model['columns'][j]['name']}' has more subsets than the {most} that are checked")
        asks += [j] * (len(made) - len(asks))
    if len(made) > most:
        raise NoProof(f"there are more subsets than the {most} that are checked")
    return matrix(made, rows), asks
