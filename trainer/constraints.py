"""Side constraints as people write them: columns and classes by name, read, checked, and turned into constraints of an instance.

What can be said without the rows is said by the checks of the parameters, before a run is queued.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from trainer.data.problem import Names, Problem
from trainer.dtypes import BitArray, CountArray
from trainer.errors import ParameterError
from trainer.method import Parameter, Settings, at_most, exact_fraction

MAX_GROUPS = 20
MAX_MONOTONE_DEPTH = 4


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """What a tree must satisfy besides its depth.

    `recalls` (class, share): so much of the weight of the class is classified correctly.  `conflict` uint8 (F, F), symmetric:
    1 for features that no path holds both (on the diagonal: that no path asks twice, which it never does).  `columns` int (F,):
    the column of each feature, for `max_columns`.
    """

    recalls: tuple[tuple[int, Fraction], ...] = ()
    conflict: BitArray | None = None
    max_leaves: int | None = None
    max_columns: int | None = None
    columns: CountArray | None = None


def recalls(settings: Settings, names: Names) -> list[tuple[str, Fraction]]:
    """The classes with the shares of them that are required; raises ParameterError."""
    found = []
    for text in _items(settings["recall"]):
        name, colon, share = text.rpartition(":")
        if not colon:
            raise ParameterError({"recall": f"'{text[:80]}' has no share; write as in 'yes: 0.9; no: 0.8'."})
        found.append((names.label(name.strip(), "recall"), _share(share)))
    return found


def favoured(settings: Settings, names: Names) -> tuple[str, str] | None:
    """The column of the groups and the class that fairness is about (empty: the last one that occurs); raises ParameterError."""
    if settings["fairness"] == "none":
        return None
    if settings["fairness"] == "parity" and len(names.classes) > 2:
        raise ParameterError({"fairness": "Parity needs two classes; choose 'opportunity' for more."})
    name = settings["fairness_class"].strip()
    return (
        names.column(settings["fairness_column"].strip(), "fairness_column"),
        names.label(name, "fairness_class") if name else "",
    )


def forbidden_pairs(settings: Settings, names: Names) -> list[tuple[str, str]]:
    """The columns that no path asks together; raises ParameterError."""
    found = []
    for text in _items(settings["forbidden_pairs"]):
        pair = [names.column(name.strip(), "forbidden_pairs") for name in text.split("+")]
        if len(pair) != 2:
            raise ParameterError(
                {"forbidden_pairs": f"'{text}' is not a pair; write two columns with a + between them."}
            )
        found.append((pair[0], pair[1]))
    return found


def directions(settings: Settings, names: Names) -> list[tuple[str, bool]]:
    """The monotone columns, True where the class may only fall along them; raises ParameterError."""
    found = []
    for text in _items(settings["monotone"]):
        name, _, direction = text.rpartition(" ")
        if direction not in ("up", "down"):
            raise ParameterError({"monotone": f"'{text}' has no direction; write 'column up' or 'column down'."})
        if settings["depth"] > MAX_MONOTONE_DEPTH:
            raise ParameterError({"monotone": f"Monotone columns need a depth of at most {MAX_MONOTONE_DEPTH}."})
        found.append((names.column(name.strip(), "monotone"), direction == "down"))
    return found


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(";") if item.strip()]


def _share(text: str) -> Fraction:
    try:
        share = exact_fraction(text.strip())
    except ValueError:
        raise ParameterError({"recall": f"'{text[:80]}' is not a share; write as in 'yes: 0.9; no: 0.8'."}) from None
    if not 0 <= share <= 1:
        raise ParameterError({"recall": f"{text.strip()} is not between 0 and 1."})
    return share


def _recall_words(settings: Settings) -> list[str]:
    pairs = [text.rpartition(":") for text in _items(settings["recall"])]
    return [f"recall of {name.strip()} ≥ {share.strip()}" for name, _, share in pairs]


def _fairness_words(settings: Settings) -> list[str]:
    if settings["fairness"] == "none":
        return []
    name = settings["fairness_class"].strip() or "the last class"
    among = f" among rows of {name}" if settings["fairness"] == "opportunity" else ""
    column, delta = settings["fairness_column"].strip(), settings["fairness_delta"]
    return [f"{name} predicted at rates at most {delta} apart between groups of {column}{among}"]


def _pair_words(settings: Settings) -> list[str]:
    return [
        f"no path with both {' and '.join(n.strip() for n in t.split('+'))}"
        for t in _items(settings["forbidden_pairs"])
    ]


def _monotone_words(settings: Settings) -> list[str]:
    pairs = [text.rpartition(" ") for text in _items(settings["monotone"])]
    return [f"classes only {'rising' if way == 'up' else 'falling'} along {name.strip()}" for name, _, way in pairs]


CONSTRAINTS = (
    Parameter(
        name="max_leaves", type="integer", default=None, minimum=1, maximum=256, label="Largest number of leaves",
        help="The tree may have at most this many leaves; empty means no limit.", advanced=True,
        restricts=at_most("max_leaves", "leaf", "leaves"),
    ),
    Parameter(
        name="max_columns", type="integer", default=None, minimum=0, maximum=10_000, label="Largest number of columns",
        help="The tree may use at most this many different columns; empty means no limit.", advanced=True,
        restricts=at_most("max_columns", "column", "columns"),
    ),
    Parameter(
        name="recall", type="text", default="", label="Least recall",
        help="The share of a class that must be classified correctly (sensitivity, specificity), for example 'yes: 0.9; no: 0.8'.",
        advanced=True, check=recalls, restricts=_recall_words,
    ),
    Parameter(
        name="fairness", type="choice", default="none", choices=("none", "parity", "opportunity"), label="Fairness",
        help="Predict a class equally often in all groups: among all rows (parity, two classes) or among the rows of that class (opportunity).",
        advanced=True, check=favoured, restricts=_fairness_words,
    ),
    Parameter(
        name="fairness_column", type="text", default="", label="Groups",
        help="The column whose values form the groups that are compared.", advanced=True,
    ),
    Parameter(
        name="fairness_class", type="text", default="", label="Favoured class",
        help="The predicted class whose rates are compared; empty means the last class.", advanced=True,
    ),
    Parameter(
        name="fairness_delta", type="number", default=0.05, minimum=0, maximum=1, label="Largest difference of rates",
        help="The largest allowed difference between the rates of two groups.", advanced=True,
    ),
    Parameter(
        name="forbidden_pairs", type="text", default="", label="Forbidden pairs",
        help="Pairs of columns that must not appear on the same path, for example 'age + income; sex + region'.", advanced=True,
        check=forbidden_pairs, restricts=_pair_words,
    ),
    Parameter(
        name="monotone", type="text", default="", label="Monotone columns",
        help="Columns along which the predicted class may only rise or only fall (classes in their order), for example 'age up; price down'.",
        advanced=True, check=directions, restricts=_monotone_words,
    ),
)  # fmt: skip


def constrained(settings: Settings) -> bool:
    """True if the settings ask for any side constraint."""
    limits = (settings["max_leaves"], settings["max_columns"])
    texts = (settings["recall"], settings["forbidden_pairs"], settings["monotone"])
    return settings["fairness"] != "none" or any(n is not None for n in limits) or any(map(_items, texts))


def groups(problem: Problem, settings: Settings) -> np.ndarray | None:
    """The group of each row for fairness, int32 (rows,), or None if no fairness is asked for."""
    asked = favoured(settings, problem.names)
    if asked is None:
        return None
    column = problem.table.columns[problem.table.names.index(asked[0])]
    values, codes = np.unique(column.values, return_inverse=True)
    if len(values) > MAX_GROUPS:
        words = f"'{asked[0]}' has {len(values)} values; groups must be at most {MAX_GROUPS}. Choose another."
        raise ParameterError({"fairness_column": words})
    return codes.astype(np.int32)
