"""Train on rewards: search them as row costs, report them as rewards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from trainer.data.costs import EACH_ROW
from trainer.data.folds import training_rows
from trainer.data.problem import setting_names
from trainer.data.rewards import read_rewards, regrets, reward_record, split_rewards
from trainer.dtypes import FloatArray
from trainer.training.run import TrainRequest, TrainResult, row_weights


def as_costs(request: TrainRequest) -> tuple[TrainRequest, FloatArray | None]:
    """Return the request with its rewards as costs of each row, and the reward of each answer, float64 (rows, answers).

    A cost is the difference to the best answer of the row. Columns of rewards are not features. A request without rewards is
    returned unchanged, with None.

    Raises
    ------
    ParameterError
        If rewards cannot be read, or a row has none.
    """
    parameters = request.parameters
    rewards = read_rewards(str(parameters.get("costs") or ""), setting_names(request.table, request.labels))
    if rewards is None:
        return request, None
    table, earned = split_rewards(request.table, rewards)
    settings = {**parameters, "costs": EACH_ROW, "cost_unit": parameters.get("cost_unit") or rewards.unit}
    return replace(request, table=table, parameters=settings, costs=regrets(earned)), earned


def with_reward(result: TrainResult, request: TrainRequest, earned: FloatArray | None) -> TrainResult:
    """Return the result with the reward of its answers to the training rows; unchanged without rewards."""
    if earned is None:
        return result
    rows = training_rows(request.labels.codes, result.model.rows, result.model.parameters)
    answers = result.tree.labels[result.tree.apply(request.table.take(rows).matrix())]
    unit = str(result.summary["cost_unit"])
    record = reward_record(earned[rows], answers, request.labels.classes, unit, _true_weights(request, rows))
    return replace(result, summary=result.summary | record)


def _true_weights(request: TrainRequest, rows: np.ndarray) -> FloatArray | None:
    """Return the weights of `rows`, float64, without a step; None if all rows have weight 1."""
    weights = row_weights(request, rows)
    if weights is None:
        return None
    decimals = request.table.weights if request.weights is None else None
    return weights * (1.0 if decimals is None else float(decimals.step))


def best_reward(request: TrainRequest, earned: FloatArray | None) -> dict[str, Any]:
    """Return the total reward if every row gets its best answer; empty without rewards.

    The reward of a tree is this total minus the cost of its answers.
    """
    if earned is None:
        return {}
    weights = _true_weights(request, np.arange(len(earned)))
    best = earned.max(axis=1)
    return {"best_reward": float(best.sum() if weights is None else weights @ best)}


def best_reward_sentence(record: dict[str, Any], unit: str) -> str:
    """Return a sentence that explains costs if answers have rewards."""
    earns = f"{record['best_reward']:.6g} {unit}".rstrip()
    return f"A cost is what the best answer of a row earns more: with the best answers, all rows earn {earns}."
