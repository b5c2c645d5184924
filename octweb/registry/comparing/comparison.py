"""Compare several models of one data set: findings, frontier and table."""

from __future__ import annotations

from typing import Any

from octweb.registry.document.claims import claim_badges
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from octweb.registry.page.performance import unseen_base_rate, unseen_interval
from octweb.registry.page.scene import ModelScene
from trainer.errors import join_with_and
from trainer.tree.describe import weight_step
from trainer.tree.numbers import number_text, points_text


def compare_models(models: list[TreeModel]) -> dict[str, Any]:
    """Return rows for table and chart, best on unseen rows first, with findings and counts.

    Trees are ranked by cost per unseen row if all have the same costs of answers and held-out rows, otherwise by
    accuracy.
    """
    rows = [_row(model) for model in models]
    by_cost = bool(rows) and all(
        r["cost"] is not None and r["cost"]["stated"] == rows[0]["cost"]["stated"] for r in rows
    )
    for row in rows:
        if by_cost:
            row["loss"] = row["cost"]["per_row"]
        else:
            row["loss"] = 1 if row["unseen"] is None else -row["unseen"]
    rows.sort(key=lambda r: (r["loss"], r["leaves"]))
    evaluated = [r for r in rows if r["unseen"] is not None]
    for row in rows:
        row["frontier"] = row["unseen"] is not None and not any(_dominates(other, row) for other in evaluated)
    return {
        "rows": rows,
        "by_cost": by_cost,
        "has_costs": any(r["cost"] is not None for r in rows),
        "findings": cost_findings(rows) if by_cost else findings(rows),
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
        "cost": _unseen_cost(model),
        "interval": unseen_interval(scene),
        "base_rate": unseen_base_rate(scene),
        "deviation": crossed.get("deviation") if crossed.get("accuracy") is not None else None,
        "train": model.train_accuracy,
        "leaves": model.leaves,
        "objective": model.objective,
        "bound": model.bound,
    }


def _unseen_cost(model: TreeModel) -> dict[str, Any] | None:
    """Return the cost per held-out row with its interval, and that of the best constant answer.

    None without costs or without held-out rows.
    """
    file = model_file(model)
    stated = file.certificate.get("costs")
    test = file.metrics.get("test") or {}
    if not stated or test.get("cost_per_row") is None:
        return None
    unit = f" {stated['unit']}" if stated["unit"] else ""
    interval = test.get("cost_interval")
    return {
        # costs from an array have no text, so they are never comparable with those of another model
        "stated": (stated["unit"], stated["costs"] or str(model.pk)),
        "per_row": test["cost_per_row"],
        "words": f"{number_text(test['cost_per_row'])}{unit}",
        "interval": "" if interval is None else f"{number_text(interval[0])} to {number_text(interval[1])}",
        "constant": f"{number_text(test['constant_cost'] / (test['n'] * weight_step(file.certificate)))}{unit}",
    }


def _span(row: dict[str, Any]) -> str:
    """Return the 95 % interval in words, or "" if unknown."""
    interval = row["interval"]
    return "" if interval is None else f", 95 % interval {points_text(interval[0])} to {points_text(interval[1])}"


def _dominates(other: dict[str, Any], row: dict[str, Any]) -> bool:
    """Return whether `other` is no larger and no worse than `row`, and better in one of the two."""
    no_worse = other["leaves"] <= row["leaves"] and other["loss"] <= row["loss"]
    return no_worse and (other["leaves"] < row["leaves"] or other["loss"] < row["loss"])


def _tied_with_best(evaluated: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows whose displayed accuracy equals the best."""
    return [r for r in evaluated if points_text(r["unseen"]) == points_text(evaluated[0]["unseen"])]


def _best_words(evaluated: list[dict[str, Any]]) -> str:
    """Name every tree that has the highest accuracy on unseen rows."""
    best = evaluated[0]
    names = [f"{r['model'].title} (version {r['model'].version})" for r in _tied_with_best(evaluated)]
    value = f"({points_text(best['unseen'])} %{_span(best)})"
    if len(names) == 1:
        return f"{names[0]} has the highest accuracy on unseen rows {value}"
    return f"{join_with_and(names)} tie for the highest accuracy on unseen rows {value}"


def cost_findings(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Return the result in words (`main`), and advice on its reliability (`rest`), for trees ranked by cost."""
    best = rows[0]
    names = [
        f"{r['model'].title} (version {r['model'].version})"
        for r in rows
        if r["cost"]["words"] == best["cost"]["words"]
    ]
    span = f", 95 % interval {best['cost']['interval']}" if best["cost"]["interval"] else ""
    who = join_with_and(names)
    verb = "has" if len(names) == 1 else "tie for"
    main = f"{who} {verb} the lowest cost per unseen row ({best['cost']['words']}{span})."
    main += (
        f" Always giving the best single answer of the training rows costs {best['cost']['constant']} on the same rows."
    )
    return {"main": main, "rest": "Costs whose intervals overlap widely may differ by chance."}


def findings(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Return the result in words (`main`), and advice on its reliability (`rest`). `rows` are sorted, best first."""
    evaluated = [r for r in rows if r["unseen"] is not None]
    if not evaluated:
        return {
            "main": "No tree here was tried on unseen rows.",
            "rest": "Hold out a share of the rows, or cross-validate, to compare them.",
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
