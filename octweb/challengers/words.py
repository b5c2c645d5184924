"""Write sentences about a challenger."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.utils.text import capfirst

from octweb.core.templatetags.octweb import whole
from octweb.life.words import day_text

if TYPE_CHECKING:
    from octweb.challengers.models import Challenge
    from octweb.challengers.verdicts import Verdicts
    from octweb.registry.models import TreeModel

MAX_ODDS = 1e9  # larger odds are written as "more than" this
LEAST_ODDS = 2.0  # smaller odds are not evidence, so no sentence states them
NO_RECORDS = "Who was right cannot be known: no record of each answer holds the columns of both trees. Choose a record of each answer at the approval."


def sentences(
    challenge: Challenge,
    rows: int,
    different: int,
    verdicts: Verdicts,
    *,
    has_outcomes: bool,
    unheard: Sequence[str] = (),
) -> list[str]:
    """Return the page's sentences about a challenger.

    `unheard` are the answers of the served tree for which no outcome is known.
    """
    name = challenger_name(challenge)
    since = day_text(challenge.since.date())
    if not rows:
        return [capfirst(f"{name} has answered silently since {since}. No row has come yet.")]
    words = [
        f"Since {since}, {name} would have answered {whole(different)} of {whole(rows)} row{'' if rows == 1 else 's'} differently."
    ]
    if not has_outcomes and not (verdicts.decided or verdicts.neither or verdicts.unknown):
        return [*words, NO_RECORDS]
    if different:
        words += _outcome_sentences(challenge, verdicts)
        words[-1] += unheard_words(unheard) if verdicts.decided else ""
    return words


def _outcome_sentences(challenge: Challenge, verdicts: Verdicts) -> list[str]:
    known = verdicts.decided + verdicts.neither
    if not known:
        return ["None of these rows has a known outcome yet."]
    name = challenger_name(challenge)
    served = served_name(challenge)
    words = [
        f"{whole(known)} of these {'has' if known == 1 else 'have'} a known outcome: {name} was right on {whole(verdicts.challenger)}, "
        f"{served} on {whole(verdicts.served)}"
        + (f", neither on {whole(verdicts.neither)}." if verdicts.neither else ".")
    ]
    return [*words, odds_words(verdicts, name, served)]


def unheard_words(answers: Sequence[str]) -> str:
    """Return a sentence that lists the answers without any known outcome, with a leading space.

    "" if there are none.
    """
    if not answers:
        return ""
    return f" No outcome is known where the answer was {' or '.join(answers)}, so this says nothing about those."


def odds_words(verdicts: Verdicts, challenger: str, served: str) -> str:
    """Return a sentence with the odds, rounded down to two digits, and the model that they favour."""
    odds = verdicts.odds
    if odds < LEAST_ODDS:
        return "That may well be chance."
    better = challenger if 2 * verdicts.challenger > verdicts.decided else served
    if odds >= MAX_ODDS:
        return f"Odds of more than {whole(int(MAX_ODDS))} to 1 against chance, for {better}."
    step = 10 ** max(0, int(math.log10(odds)) - 1)
    return f"Odds {whole(int(odds // step) * step)} to 1 against chance, for {better}."


def challenger_name(challenge: Challenge) -> str:
    """Return "version 2", or name and version if the two models have different names."""
    return _short_name(challenge, challenge.challenger)


def served_name(challenge: Challenge) -> str:
    """Return the name of the served model in the form of `challenger_name`."""
    return _short_name(challenge, challenge.model)


def _short_name(challenge: Challenge, model: TreeModel) -> str:
    is_same_name = challenge.challenger.family_id == challenge.model.family_id
    return f"version {model.version}" if is_same_name else str(model)
