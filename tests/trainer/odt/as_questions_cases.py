"""Cases and oracles of `test_as_questions.py` that other tests use, too."""

from __future__ import annotations

import numpy as np

from trainer.data.reader import load
from trainer.training.run import TrainRequest, save, train


def trained(folder, seed, **parameters):
    """Return model, proof and file of a random table of categories and numbers with equal rows."""
    r = np.random.default_rng(seed)
    n = int(r.integers(12, 50))
    classes = 2 + (seed % 3 == 0)
    columns = [r.integers(0, r.integers(1, 6), n) for _ in range(3)]
    numbers = r.integers(0, 7, n)
    answers = r.integers(0, classes, n)
    answers[:classes] = range(classes)
    rows = [f"u{a},v{b},w{c},{d / 4},k{k}" for a, b, c, d, k in zip(*columns, numbers, answers, strict=True)]
    data = folder / "rows.csv"
    data.write_text("\n".join(["a,b,c,number,class", *rows]) + "\n")
    table, labels, *_ = load(data, target="class", kinds={"a": "categorical", "b": "categorical", "c": "categorical"})
    proof = folder / "proof.gz"
    model = folder / "model.json"
    asked = {"depth": 1 + seed % 3, "bins": 2 + seed % 4, "max_card": (0, 0, 1, 2)[seed % 4]} | parameters
    request = TrainRequest(
        table=table, labels=labels, method="odt", parameters=asked, test_share=0, folds=0, proof=proof
    )
    result = train(request)
    save(result.model, model)
    return model, proof, data, result
