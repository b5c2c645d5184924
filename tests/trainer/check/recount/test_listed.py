"""Optimal trees listed in a file are all verified, and none is refused, even if many are alike."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.seeds import seeds
from trainer.check.recount import verdict, verify
from trainer.data.reader import load
from trainer.training.run import TrainRequest, save, train

pytestmark = pytest.mark.slow

SCHEMES = ("quantile-thresholds", "quantile-buckets", "all-thresholds", "none")


@seeds(40)
def test_every_optimal_tree_of_an_honest_file_holds(tmp_path_factory, seed):
    folder = tmp_path_factory.mktemp("listed")
    r = np.random.default_rng(seed)
    n = int(r.integers(8, 30))
    scheme = SCHEMES[seed % 4]
    number = r.integers(0, 5, n) / 3 if scheme != "none" else r.integers(0, 2, n)
    rows = [
        f"{a:.9g},{b},{r.integers(0, 2)},k{r.integers(2 + seed % 3 // 2)}"
        for a, b in zip(number, r.choice(list("uvw"), n), strict=True)
    ]
    rows[:2] = [row[:-1] + str(k) for k, row in enumerate(rows[:2])]
    data = folder / "rows.csv"
    model = folder / "model.json"
    proof = folder / "proof.gz"
    data.write_text("\n".join(["number,letter,flag,class", *rows]) + "\n")
    table, labels, *_ = load(data, target="class")
    asked = {
        "depth": 1 + seed % 3,
        "bins": 2 + seed % 7,
        "binarise": scheme,
        "optimal_trees": 200,
        "leaf_penalty": (0, 0.01)[seed % 2],
    }
    asked |= {"class_weight": "balanced"} if seed % 5 == 0 else {"min_leaf": 1 + seed // 2 % 2}
    save(train(TrainRequest(table=table, labels=labels, method="exact", parameters=asked, proof=proof)).model, model)
    findings = verify(model, data, proof)
    assert verdict(findings) == "proved", (findings, json.loads(model.read_text())["certificate"]["evidence"])
