"""Describe what a leaderboard recommends, why, and what to expect of it."""

from __future__ import annotations

from collections.abc import Sequence

from octweb.core.templatetags.octweb import NARROW, percent
from octweb.experiments.board import Board, BoardLine, held_out, interval_of
from octweb.figures.measure import Measure
from trainer.errors import join_with_and
from trainer.evaluate import NestedEstimate, OneStandardErrorChoice, Score
from trainer.tree.numbers import count_words, number_text, points_text


def reasons(leaderboard: Board) -> list[str]:
    """Return sentences that give reasons for the recommended tree."""
    if leaderboard.choice is None or leaderboard.chosen is None or leaderboard.highest is None:
        return []
    chosen = leaderboard.choice.chosen
    highest = leaderboard.choice.highest
    depth = int(leaderboard.chosen.candidate.summary.get("depth") or 0)
    most = f"It asks at most {depth} question{'s' if depth != 1 else ''}, {leaderboard.chosen.asks} at a time"
    if not depth:
        most = "It asks nothing: no question is worth its leaves"
    measure = leaderboard.measure
    accurate = f"is right for {percent(chosen.accuracy)} of unseen rows"
    sentences = [f"{most}, and {accurate}."]
    if measure.by_cost:
        sentences = [f"{most}. Its answers cost {measure.text(chosen.mean)} per unseen row. It {accurate}."]
    if chosen.label in leaderboard.choice.tied:
        sentences.append(_best_words(leaderboard, leaderboard.chosen))
        simpler = [
            line
            for line in leaderboard.lines
            if line.score and line.leaves and line.leaves < (leaderboard.chosen.leaves or 0)
        ]
        if simpler:
            sentences.append("All smaller trees are worse by more than one standard error.")
    else:
        behind = measure.difference(abs(highest.mean - chosen.mean))
        sentences.append(
            f"{_highest_words(leaderboard)}. The difference of {behind} is no larger than the standard error of {measure.difference(highest.error)}."
        )
    return sentences


def _best_words(leaderboard: Board, chosen: BoardLine) -> str:
    """State that no candidate is better, and name those that tie with the chosen one."""
    measure = leaderboard.measure
    others = [line.candidate.name for line in leaderboard.tied if line is not chosen]
    if not others:
        return f"No other candidate is {measure.better}."
    what = f"{measure.best} {'cost' if measure.by_cost else 'accuracy'}"
    return f"It ties with {join_with_and(others)} for the {what}; the rule below decided."


def _highest_words(leaderboard: Board) -> str:
    highest = leaderboard.tied[0]
    best = leaderboard.measure.best
    if len(leaderboard.tied) == 1:
        return f"The {best}, {highest.mean_words}, has {highest.leaves} leaves"
    names = [line.candidate.name for line in leaderboard.tied]
    who = join_with_and(names) if len(names) == 2 else count_words(len(names), "candidate").capitalize()
    return f"{who} tie for the {best}, {highest.mean_words}"


def reasons_against(leaderboard: Board) -> list[dict[str, str]]:
    """Return why each other finished candidate is not recommended, best candidate first."""
    if leaderboard.choice is None:
        return []
    scored = [(line, line.score) for line in leaderboard.lines if line.score is not None and line.candidate.is_done]
    return [
        {
            "id": line.label,
            "name": line.candidate.name,
            "reason": _why_not(leaderboard.choice, score, leaderboard.measure),
        }
        for line, score in sorted(scored, key=lambda pair: pair[1].loss)
        if not line.recommended
    ]


def _why_not(choice: OneStandardErrorChoice, score: Score, measure: Measure) -> str:
    """Return the first rule of `choose` that excludes the candidate, in words."""
    chosen = choice.chosen
    about = "costs about as much" if measure.by_cost else "about as accurate"
    same = f"{about} and is as large" if measure.by_cost else f"{about} and as large"
    if score.label not in choice.within:
        behind = measure.difference(abs(choice.highest.mean - score.mean))
        side = "above" if measure.by_cost else "below"
        return f"{behind} {side} the {measure.best}, more than its standard error of {measure.difference(choice.highest.error)}"
    if score.leaves != chosen.leaves:
        return f"{about}, but {number_text(score.leaves)} leaves in the folds instead of {number_text(chosen.leaves)}"
    if score.columns != chosen.columns:
        return f"{same}, but it asks more columns in one question"
    if score.claim != chosen.claim:
        return f"{same}, but less is proved about it"
    return f"as large, and not {measure.better}"


def honest_words(leaderboard: Board) -> str:
    """Return a sentence with the choice's result on unseen rows, or with when it will be known."""
    experiment = leaderboard.experiment
    if experiment.nested:
        if leaderboard.honest is None:
            return "How good the choice is will be known when all candidates are done: the choice is then made again without each fold."
        same = sum(
            pick == (leaderboard.chosen.label if leaderboard.chosen else "") for pick in leaderboard.honest.picks
        )
        expected = _expected_words(leaderboard.honest, leaderboard.measure, weighted=bool(experiment.weight))
        return f"{expected} {_repeated_words(same, len(leaderboard.honest.picks))}"
    if experiment.chosen_id is None:
        about = "About " if experiment.group or experiment.time else ""
        return f"{about}{experiment.held_out_rows:,} rows were kept out of all of this. They are measured once, when you open the first tree."
    test = held_out(experiment)
    if test is None:
        return "No rows were held out."
    of = f"the weight of {test.get('rows', 0):,}" if experiment.weight else f"{test['n']:,}"
    took_no_part = f"of {of} rows that took no part in any of this, the tree that you opened first is right for"
    right = percent(test["accuracy"]) if experiment.weight else f"{test['correct']:,}"
    right += span(interval_of(test))
    if leaderboard.measure.by_cost and test.get("cost_per_row") is not None:
        cost = leaderboard.measure.text(test["cost_per_row"])
        interval = cost_span(test.get("cost_interval"))
        return f"Expect costs of {cost} per new row{interval}: {took_no_part} {right}."
    return f"Expect {percent(test['accuracy'])} right on new rows: {took_no_part} {right}."


def _expected_words(estimate: NestedEstimate, measure: Measure, *, weighted: bool) -> str:
    """State what to expect of the choice on new rows, from nested folds."""
    right = f"{percent(estimate.accuracy)} right"
    counts = counts_words(estimate.correct, estimate.n, estimate.interval, weighted=weighted)
    if estimate.cost_per_row is None:
        return f"Expect {right} on new rows {counts}."
    cost = f"{measure.text(estimate.cost_per_row)} per new row{cost_span(estimate.cost_interval)}"
    return f"Expect costs of {cost}, and {right} {counts}."


def _repeated_words(same: int, choices: int) -> str:
    """State how often another candidate was chosen when a fold was left out."""
    other = choices - same
    if not other:
        return f"Repeating the choice {choices} times gave the same each time."
    return f"Repeating the choice gave another one {other} time{'' if other == 1 else 's'} of {choices}."


def counts_words(correct: int, n: int, interval: tuple[float, float] | None, *, weighted: bool) -> str:
    """Return counts and interval of an accuracy in brackets; counts of weights are left out, since they are not rows."""
    return f"({'by weight' if weighted else f'{correct:,} of {n:,}'}{span(interval)})"


def cost_span(interval: Sequence[float] | None) -> str:
    """Return the interval of a cost in words, in brackets. "" for None."""
    if interval is None:
        return ""
    return f" (95{NARROW}% interval {number_text(interval[0])} to {number_text(interval[1])})"


def span(interval: tuple[float, float] | None) -> str:
    """Return an interval in words, to follow counts in brackets. "" for None."""
    return (
        "" if interval is None else f"; 95{NARROW}% interval {points_text(interval[0])} to {points_text(interval[1])}"
    )
