"""Describe the example tree of the home page, whose model file is shipped.

`octweb samples` writes breast-cancer.csv. The following command made the file, and a test checks its proof against the
rows of the sample: `octweb train breast-cancer.csv --target diagnosis --method exact --depth 2 --test-share 0.25
--output example.json`
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from octweb.core import badges
from trainer.data.samples import SAMPLES, Sample
from trainer.evaluate.verdict import base_rate
from trainer.explain.carried import tree_data
from trainer.explain.statistics import statistics_of_model
from trainer.training.claims import read_claim
from trainer.tree.file import read_model

FILE = Path(__file__).with_name("example.json")
SLUG = "breast-cancer"  # sample on which the tree was trained


def example_sample() -> Sample:
    """Return the sample on which the tree was trained."""
    return next(sample for sample in SAMPLES if sample.slug == SLUG)


@cache
def example_tree() -> dict[str, Any]:
    """Return the tree for the browser, its claim, and its correct rows next to those of one answer for all."""
    model = read_model(FILE)
    claim = read_claim(model.certificate)
    rate = base_rate(model)
    assert rate is not None  # the file contains held-out rows
    unseen = model.metrics["test"]
    return {
        "tree": tree_data(model.tree, statistics_of_model(model.tree)),
        "sample": example_sample(),
        "badge": badges.claim(claim.kind, claim.words, f"{claim.explanation.capitalize()}. Scope: {claim.scope}."),
        "train": model.metrics["train"],
        "unseen": unseen,
        "base_label": rate.label,
        "base_rows": round(rate.share * unseen["n"]),
    }
