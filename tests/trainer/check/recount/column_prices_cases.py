"""Cases and oracles of `test_column_prices.py` that other tests use, too."""

from __future__ import annotations

from tests.trainer.check.recount.files import findings
from trainer.check.recount import verdict
from trainer.errors import ModelFileError


def verdict_of(document, data, tmp_path):
    """Return the verdict on a document. One that cannot be read counts as refuted."""
    try:
        return verdict(findings(document, data, tmp_path))
    except ModelFileError:
        return "refuted"


def higher_objective(document):
    document["certificate"]["objective"] += 0.01
    document["certificate"]["bound"] += 0.01


def lower_bound(document):
    document["certificate"]["bound"] -= 0.01
