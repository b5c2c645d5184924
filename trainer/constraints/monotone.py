"""Make the class rise, or fall, monotonically with a column.

The constraint is written as 'age up; price down'.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.constraints.beside import check_beside
from trainer.constraints.text import direction_text, split_items
from trainer.data.problem import SettingNames
from trainer.errors import ParameterError
from trainer.methods.base import Parameter, Settings

MAX_DEPTH = 4


def directions(settings: Settings, names: SettingNames) -> list[tuple[str, bool]]:
    """Return the monotone columns; True if the class may only decrease. Raises ParameterError."""
    columns = []
    for text in split_items(settings["monotone"]):
        name, _, direction = text.rpartition(" ")
        if direction not in ("up", "down"):
            raise ParameterError({"monotone": f"'{text[:80]}' has no direction. Write 'column up' or 'column down'."})
        if (settings["depth"] or 0) > MAX_DEPTH:
            raise ParameterError(
                {
                    "monotone": f"Monotone columns are possible up to depth {MAX_DEPTH}, but 'depth' is {settings['depth']}. Set a lower depth, or leave 'monotone' empty."
                }
            )
        columns.append((names.column(name.strip(), "monotone"), direction == "down"))
    return columns


def _check_monotone(settings: Settings, names: SettingNames) -> None:
    if directions(settings, names):
        check_beside("monotone", settings)


def _scope_words(settings: Settings) -> list[str]:
    pairs = [text.rpartition(" ") for text in split_items(settings["monotone"])]
    return [f"classes only {'rising' if way == 'up' else 'falling'} along {name.strip()}" for name, _, way in pairs]


def _sentences(values: Mapping[str, Any]) -> list[str]:
    pairs = [text.rpartition(" ") for text in split_items(values.get("monotone"))]
    return [f"Along {name} the class may only {'rise' if way == 'up' else 'fall'}." for name, _, way in pairs]


MONOTONE = Parameter(
    name="monotone",
    type="text",
    default="",
    label="Monotone columns",
    help="Columns along which the predicted class may only rise or only fall (classes in their order), for example 'age up; price down'. "
    "Questions whether a cell is empty are not restricted.",
    advanced=True,
    check=_check_monotone,
    restricts=_scope_words,
    sentences=_sentences,
    one_leaf=True,
    as_text=direction_text,
)
