"""Compare several models of one data set: findings, frontier and table."""

from __future__ import annotations

from typing import Any

from octweb.registry.document.claims import claim_badges
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from octweb.registry.page.performance import unseen_base_rate, unseen_interval
from octweb.registry.page.scene import ModelScene
from trainer.tree.numbers import points_text


def compare_models(models: list[TreeModel]) -> dict[str, Any]:
    """Return rows for the table and the chart, best on unseen rows first, with the findings and counts."""
    rows = [_row(model) for model in models]
    rows.sort(key=lambda r: (-(r["unseen"] if r["unseen"] is not None else -1), r["leaves"]))
    evaluated = [r for r in rows if r["unseen"] is not None]
    for row in rows:
        row["frontier"] = row["unseen"] is not None and not any(_dominates(other, row) for other in evaluated)
    return {
        "rows": rows,
        "findings": findings(rows),
        "evaluated": len(evaluated),
        "folds": sum(r["deviation"] is not None for r in rows),
        "held_out": sum(r["deviation"] is None for r in evaluated),
    }


def _row(model: TreeModel) -> dict[str, Any]:
    scene = ModelScene(model=model, user=None, inside=False)
    crossed = model_file(model).metrics.get("cross_validation") or {}
    return {
        "model": model,
        "claims": claim_badges(model),
        "unseen": model.unseen_accuracy,
        "interval": unseen_interval(scene),
        "base_rate": unseen_base_rate(scene),
        "deviation": crossed.get("deviation") if crossed.get("accuracy") is not None else None,
        "train": model.train_accuracy,
        "leaves": model.leaves,
        "objective": model.objective,
        "bound": model.bound,
    }


def _span(row: dict[str, Any]) -> str:
    """Return the 95 % interval in words; empty if unknown."""
    interval = row["interval"]
    return "" if interval is None else f", 95 % interval {points_text(interval[0])} to {points_text(interval[1])}"


def _dominates(other: dict[str, Any], row: dict[str, Any]) -> bool:
    """Return whether `other` is at least as small and accurate, and better in one of the two."""
    no_worse = other["leaves"] <= row["leaves"] and other["unseen"] >= row["unseen"]
    return no_worse and (other["leaves"] < row["leaves"] or other["unseen"] > row["unseen"])


def _tied_with_best(evaluated: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows whose displayed accuracy equals the best one."""
    return [r for r in evaluated if points_text(r["unseen"]) == points_text(evaluated[0]["unseen"])]


def _best_words(evaluated: list[dict[str, Any]]) -> str:
    """Name every tree with the highest accuracy on unseen rows."""
    best = evaluated[0]
    names = [f"{r['model'].title} (version {r['model'].version})" for r in _tied_with_best(evaluated)]
    value = f"({points_text(best['unseen'])} %{_span(best)})"
    if len(names) == 1:
        return f"{names[0]} has the highest accuracy on unseen rows {value}"
    return f"{', '.join(names[:-1])} and {names[-1]} tie for the highest accuracy on unseen rows {value}"


def findings(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Return the result in words (`main`), and advice on its reliability (`rest`). `rows` are sorted, best first."""
    evaluated = [r for r in rows if r["unseen"] is not None]
    if not evaluated:
        return {
            "main": "No tree here was tried on unseen rows.",
            "rest": "Train with folds or a test share to compare them.",
        }
    best = evaluated[0]
    smaller = [r for r in rows if r["leaves"] < best["leaves"]]
    main = _best_words(evaluated)
    if not smaller:
        main += " and no tree here is smaller."
    elif len(_tied_with_best(evaluated)) == 1:
        main += f" with {best['leaves']} {'leaf' if best['leaves'] == 1 else 'leaves'}."
    else:
        main += "."
    if best["base_rate"] is not None:
        main += f" Always giving the most frequent class of the training rows is right for {points_text(best['base_rate'])} % of the same rows."
    spread = [r["deviation"] for r in evaluated if r["deviation"] is not None]
    caution = "Tick two trees to see whether they differ by more than chance."
    if spread:
        points = 100 * sorted(spread)[len(spread) // 2]
        caution = f"Differences under about {points:.1f} points are within the spread of the folds."
        near = next(
            (r for r in evaluated[1:] if r["leaves"] < best["leaves"] and best["unseen"] - r["unseen"] <= points / 100),
            None,
        )
        if near is not None:
            caution = (
                f"{near['model'].title} (version {near['model'].version}) is within that spread with {near['leaves']} leaves. "
                + caution
            )
    return {"main": main, "rest": caution}
