"""Describe how a model was selected, with an unbiased accuracy estimate."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.urls import reverse

from octweb.core.templatetags.octweb import percent
from octweb.experiments.board import Board, board, held_out, interval_of
from octweb.experiments.models import Candidate, Experiment
from octweb.experiments.wording import cost_span, counts_words
from octweb.registry.document.selection import Selection
from octweb.registry.models import TreeModel

TOO_HIGH = "A tree that is chosen because it does well looks better than it is."
AGAIN = "The choice was made again without each fold in turn: the tree that was then recommended is"


def selection_of(model: TreeModel) -> Selection | None:
    """Return the selection from which the model resulted, or None if there was only one candidate."""
    matching = Candidate.objects.filter(Q(model=model) | Q(retrained__model=model)).defer(
        "document", "trees", "log", "records"
    )
    candidate = matching.select_related("experiment__dataset", "experiment__chosen").first()
    if candidate is None:
        return None
    experiment = candidate.experiment
    candidates = experiment.candidates.count()
    if candidates < 2:
        return None
    url = "" if experiment.deleted_at else reverse("experiments:detail", args=[experiment.pk])
    estimate = (
        _nested_estimate(candidate, board(experiment))
        if experiment.nested
        else _held_out_estimate(candidate, experiment, model)
    )
    return Selection(
        candidates=candidates, url=url, **estimate | {"words": f"One of {candidates} candidates. {estimate['words']}"}
    )


def _nested_estimate(candidate: Candidate, leaderboard: Board) -> dict[str, Any]:
    """Return the estimate from nested folds. It does not apply to a tree that the rule does not choose."""
    honest = leaderboard.honest
    if honest is None:
        ended = "Their experiment has not ended" if not leaderboard.finished else "Their folds are not complete"
        return {"fair": False, "words": f"{ended}, so it is not known what the choice is worth. {TOO_HIGH}"}
    known = {
        "fair": False,
        "accuracy": honest.accuracy,
        "interval": honest.interval,
        "correct": honest.correct,
        "n": honest.n,
    }
    weighted = bool(leaderboard.experiment.weight)
    counts = counts_words(honest.correct, honest.n, honest.interval, weighted=weighted)
    worth = f"right for {percent(honest.accuracy)} of the rows of that fold {counts}"
    if honest.cost_per_row is not None:
        cost = leaderboard.measure.text(honest.cost_per_row)
        worth = f"{worth}, and its answers cost {cost} per row{cost_span(honest.cost_interval)}"
    if leaderboard.chosen is not None and leaderboard.chosen.candidate.pk == candidate.pk:
        words = f"It was chosen by its folds. {TOO_HIGH} {AGAIN} {worth}."
        return known | {"words": words}
    words = f"The experiment recommends another one. {TOO_HIGH} {AGAIN} {worth}."
    return {"fair": False, "words": words}


def _held_out_estimate(candidate: Candidate, experiment: Experiment, model: TreeModel) -> dict[str, Any]:
    """Return the estimate on held-out rows, if no other candidate was evaluated on them."""
    first = experiment.chosen_id == candidate.pk
    test = held_out(experiment)
    if candidate.model_id == model.pk:
        if first:
            words = "It was chosen by folds of the other rows: the rows that were held out took no part in the choice."
            return {"fair": True, "words": words}
        words = "The rows that were held out were looked at before, for the tree that was opened first."
        return {"fair": False, "words": f"{words} {TOO_HIGH}"}
    if not first or test is None:
        return {
            "fair": False,
            "words": f"What the choice is worth was not measured before it was trained on all rows. {TOO_HIGH}",
        }
    interval = interval_of(test)
    words = (
        f"It was chosen by folds. {TOO_HIGH} Before it was trained on all rows, the tree with its settings was right for "
        f"{percent(test['accuracy'])} of rows that took no part in the choice "
        f"{counts_words(test['correct'], test['n'], interval, weighted=bool(experiment.weight))}."
    )
    known = {"accuracy": test["accuracy"], "interval": interval, "correct": test["correct"], "n": test["n"]}
    return {"fair": False, "words": words, **known}
