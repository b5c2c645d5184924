"""Cases and oracles of `test_goals.py` that other tests use, too."""

from __future__ import annotations

import numpy as np

from trainer.training.run import TrainRequest, save, train


def _file(table, labels, asked, folder, method="exact", proof=None):
    """Write rows and model file, and a proof at the path `proof` if it is given; return the model."""
    lines = [",".join([*table.names, "y"])]
    for row, k in zip(table.matrix(), labels.codes, strict=True):
        lines.append(",".join([*("" if np.isnan(v) else f"{v:g}" for v in row), labels.classes[k]]))
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    parameters = {"depth": 2, **asked}
    request = TrainRequest(table=table, labels=labels, method=method, parameters=parameters, proof=proof)
    model = train(request).model
    save(model, folder / "model.json")
    return model
