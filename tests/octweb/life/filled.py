"""Daily counts of a model, drawn from its training shares."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

from octweb.life.models import DailyCount
from octweb.registry.document.model_files import model_file

ROWS = 60  # rows of one day


def today():
    """Return the current day in UTC, by which answers are counted."""
    return datetime.now(UTC).date()


def leaves_of(model):
    """Return the leaves, largest first."""
    return sorted(model_file(model).tree.leaves, key=lambda v: -v.rows)


def fill(model, days, changed_from=10_000):
    """Store the counts of the days up to yesterday. From day `changed_from` on, the largest leaf has a larger share."""
    leaves = leaves_of(model)
    shares = np.array([v.rows for v in leaves]) / model_file(model).tree.nodes[0].rows
    grown = shares.copy()
    grown[0] = min(0.95, 1.8 * shares[0])
    grown[1:] *= (1 - grown[0]) / grown[1:].sum()
    rng = np.random.default_rng(1)
    for d in range(days):
        for leaf, number in zip(leaves, rng.multinomial(ROWS, grown if d >= changed_from else shares), strict=True):
            day = today() - timedelta(days=days - d)
            DailyCount.objects.create(
                model=model, day=day, api="v1", kind="rows", name=str(leaf.id), number=int(number)
            )
