"""Requests whose answers earn something: searched as costs of each row, and reported as rewards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trainer.data.costs import EACH_ROW
from trainer.data.folds import training_rows
from trainer.data.problem import setting_names
from trainer.data.rewards import read_rewards, regrets, reward_record, split_rewards
from trainer.dtypes import CountArray, FloatArray
from trainer.training.run import TrainRequest, TrainResult, row_weights


def as_costs(request: TrainRequest) -> tuple[TrainRequest, FloatArray | None]:
    """Return the request with its rewards as costs of each row, and what each answer earns, float64 (rows, answers).

    A cost is then what the best answer of the row earns more, and the columns of rewards are not asked. A request without rewards comes
    back as it is, with None.

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
    """Return the result with what its answers to the training rows earn, if answers earn something."""
    if earned is None:
        return result
    rows = training_rows(request.labels.codes, result.model.rows, result.model.parameters)
    answers = result.tree.labels[result.tree.apply(request.table.take(rows).matrix())]
    unit = str(result.summary["cost_unit"])
    record = reward_record(earned[rows], answers, request.labels.classes, unit, row_weights(request, rows))
    return replace(result, summary=result.summary | record)


def best_reward(request: TrainRequest, earned: FloatArray | None) -> dict[str, Any]:
    """Return what the best answer of each row would earn: a reward is this less a cost; empty without rewards."""
    if earned is None:
        return {}
    weights: CountArray | None = request.weights
    if weights is None and request.table.weights is not None:
        weights = request.table.weights.values
    best = earned.max(axis=1)
    return {"best_reward": float(best.sum() if weights is None else weights @ best)}


def best_reward_sentence(record: dict[str, Any], unit: str) -> str:
    """Say what a cost is where answers earn something."""
    earns = f"{record['best_reward']:.6g} {unit}".rstrip()
    return f"A cost is what the best answer of a row earns more: with the best answers, all rows earn {earns}."
