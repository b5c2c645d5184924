"""No random change of a valid file that claims more than the original is called proved.

`MUTATIONS=5000 pytest -m slow tests/trainer/check/recount/test_mutations.py` makes this number of changes. The default
is a seeded sample.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from tests.trainer.check.recount.files import findings, trained
from tests.trainer.check.recount.mutations import lies, mutated
from trainer.check.recount import verdict
from trainer.errors import TrainerError
from trainer.registry import METHODS

CASES = [
    *((m.id, {"time_limit": 2.0}, share) for m in METHODS for share in (0.0, 0.25)),
    ("exact", {"max_leaves": 3, "leaf_penalty": 0.01}, 0.0),
    ("exact", {"min_leaf": 3}, 0.0),
    ("exact", {"class_weight": "balanced"}, 0.0),
    ("exact-numeric", {"leaf_penalty": 0.02}, 0.0),
    ("bendoct", {"recall": "a: 0.5"}, 0.0),
    ("flowoct", {"monotone": "length up"}, 0.0),
    (
        "exact",
        {"monotone": "length up", "fairness": "opportunity", "fairness_column": "flag", "fairness_delta": 0.1},
        0.0,
    ),
    ("odt", {"max_card": 1}, 0.0),
]


@pytest.mark.parametrize(
    ("number", "seed"),
    [(300, 1), pytest.param(int(os.environ.get("MUTATIONS", "400")), 2, marks=pytest.mark.slow)],
)
def test_no_change_makes_a_false_claim_proved(tmp_path, number, seed):
    draw = random.Random(seed)
    seen = Counter()
    wrong = []
    cases = CASES if number > 1000 else draw.sample(CASES, 12)
    files = []
    for method, asked, share in cases:
        document, data = trained(tmp_path, method, test_share=share, folds=2 if share else 0, **asked)
        assert verdict(findings(document, data, tmp_path)) in ("proved", "recounted")
        files.append((document, data))
    for i in range(number):
        document, data = files[i % len(files)]
        changed, what = mutated(document, draw)
        try:
            found = verdict(findings(changed, data, tmp_path))
        except TrainerError:
            found = "refused"
        seen[found] += 1
        if found == "proved" and lies(changed, document):
            wrong.append((document["method"], what))
    assert wrong == []
    assert seen["refuted"] > number / 4, seen
