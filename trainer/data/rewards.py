"""Read rewards of answers and convert them to costs.

A cost is the difference to the best answer of the row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.data.cost_text import NUMBER
from trainer.data.costs import CostTerm
from trainer.data.problem import SettingNames
from trainer.dtypes import CodeArray, FloatArray
from trainer.errors import ParameterError
from trainer.table import Table

SIGNED = re.compile(rf"-?{NUMBER.pattern}", re.ASCII)
EXAMPLE = '{"unit": "EUR", "rewards": {"drug": "gain_drug", "none": 0}}'


@dataclass(frozen=True, kw_only=True)
class RewardTable:
    """The reward of each answer, in the order of the classes: a number, or a number times a column of the table."""

    terms: tuple[CostTerm, ...]
    unit: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that hold rewards."""
        return tuple(dict.fromkeys(term.column for term in self.terms if term.column is not None))


def read_rewards(text: str, names: SettingNames) -> RewardTable | None:
    """Read the rewards of answers from JSON.

    Parameters
    ----------
    text : str
        Such as ``{"unit": "EUR", "rewards": {"drug": "gain_drug", "none": 0}}``.
    names : SettingNames
        Columns and classes; each class is an answer and needs a reward.

    Returns
    -------
    RewardTable or None
        None if the text states no rewards.

    Raises
    ------
    ParameterError
        If an answer has no reward, or a reward is not a number, a column of numbers, or a number times such a column.
    """
    record = _record(text)
    if record is None or "rewards" not in record:
        return None
    by_answer = record["rewards"]
    if not isinstance(by_answer, dict) or any(isinstance(value, dict) for value in by_answer.values()):
        raise ParameterError({"costs": f"rewards need one value for each answer, as in {EXAMPLE}."})
    for answer in by_answer:
        names.label(answer, "costs")
    absent = [label for label in names.classes if label not in by_answer]
    if absent:
        raise ParameterError(
            {"costs": f"'{absent[0]}' has no reward. Each class of the target is an answer and needs one."}
        )
    terms = tuple(_term(str(by_answer[label]).strip(), label, names) for label in names.classes)
    return RewardTable(terms=terms, unit=str(record.get("unit") or "").strip())


def stated_rewards(text: str) -> tuple[dict[str, str], str] | None:
    """Return the rewards of a text by answer, and their unit; None if it has none."""
    record = _record(text)
    by_answer = None if record is None else record.get("rewards")
    if record is None or not isinstance(by_answer, dict) or any(isinstance(v, dict) for v in by_answer.values()):
        return None
    return {answer: str(value).strip() for answer, value in by_answer.items()}, str(record.get("unit") or "").strip()


def split_rewards(table: Table, rewards: RewardTable) -> tuple[Table, FloatArray]:
    """Return the table without the columns that hold rewards, and the rewards, float64 (rows, answers).

    Raises
    ------
    ParameterError
        If a cell of a reward column is empty, or all columns hold rewards.
    """
    columns = {column.schema.name: column for column in table.columns}
    values = np.empty((len(table), len(rewards.terms)))
    for answer, term in enumerate(rewards.terms):
        cells = np.ones(len(table)) if term.column is None else columns[term.column].values
        if np.isnan(cells).any():
            raise ParameterError(
                {
                    "costs": f"'{term.column}' is empty in row {int(np.isnan(cells).argmax()) + 1}. Rewards need a number in every row."
                }
            )
        levels, place = np.unique(cells + 0.0, return_inverse=True)
        products = [float(term.factor * Fraction(repr(float(level)))) for level in levels]
        values[:, answer] = np.array(products)[place.reshape(-1)]
    features = tuple(column for column in table.columns if column.schema.name not in rewards.columns)
    if not features:
        raise ParameterError(
            {"costs": "every column holds rewards, so there is none to ask. Give a table with further columns."}
        )
    return replace(table, columns=features), values


def regrets(rewards: Any) -> FloatArray:
    """Convert rewards to costs: the difference to the best answer of the row.

    The tree of least regret has the highest reward. Differences are exact in decimals.

    Parameters
    ----------
    rewards : array of shape (n_rows, n_answers)
        Reward of each answer in each row; may be negative.

    Returns
    -------
    float64 array of shape (n_rows, n_answers)
        Costs for ``fit(X, y, costs=...)``; 0 for the best answer of a row.

    Raises
    ------
    ValueError
        If the array does not have two dimensions, or holds numbers that are not finite.
    """
    values = np.asarray(rewards, np.float64)
    if values.ndim != 2 or not np.isfinite(values).all():
        raise ValueError(
            "rewards must be a table of finite numbers: a row for each row of X, a column for each answer."
        )
    levels, place = np.unique(values + 0.0, return_inverse=True)
    exact = np.array([Fraction(repr(float(level))) for level in levels], object)[place.reshape(values.shape)]
    costs: FloatArray = (exact.max(axis=1, keepdims=True) - exact).astype(np.float64)
    return costs


def reward_record(
    rewards: FloatArray, answers: CodeArray, classes: tuple[str, ...], unit: str, weights: FloatArray | None = None
) -> dict[str, Any]:
    """Return the total and mean reward of answers, and the total reward of the best single answer.

    `weights`, float64 (rows,), are row weights; None: 1.
    """
    counts = np.ones(len(answers)) if weights is None else weights
    reward = float(counts @ rewards[np.arange(len(answers)), answers])
    constants = counts @ rewards
    best = int(constants.argmax())
    return {
        "reward": reward,
        "reward_per_row": reward / float(counts.sum()),
        "reward_unit": unit,
        "best_constant_reward": {"answer": classes[best], "reward": float(constants[best])},
    }


def _record(text: str) -> Mapping[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        record = json.loads(text, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return None  # return no record here, since `read_costs` reports the error
    return record if isinstance(record, dict) else None


def _term(value: str, answer: str, names: SettingNames) -> CostTerm:
    if value in names.columns:
        return CostTerm(factor=Fraction(1), column=names.number_column(value, "costs"))
    number, star, column = value.partition("*")
    if not SIGNED.fullmatch(number.strip()):
        raise ParameterError(
            {
                "costs": f"the reward '{value[:60]}' of '{answer}' is not a number, a column, or a number times a column. Write, for example, 0.2*amount."
            }
        )
    factor = Fraction(number.strip())
    return CostTerm(factor=factor, column=names.number_column(column.strip(), "costs") if star else None)
