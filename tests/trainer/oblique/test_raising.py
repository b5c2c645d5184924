"""Case analysis alone, without a solver, reaches the optima of small tables."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.oblique.tables import rows_of, table
from tests.trainer.oracles.oblique import best_value
from tests.trainer.oracles.oblique_class import best_in_class
from trainer.check.recount import verify
from trainer.data.reader import load
from trainer.families.oblique.raising import BoundRaising
from trainer.families.oblique.tree_search import Run
from trainer.training import proof_file
from trainer.training.run import TrainRequest, save, train

BARE = {"first_trees": "none", "search_seconds": 0, "time_limit": 60, "threads": 1}


@pytest.fixture
def alone(monkeypatch):
    """Disable the bound of planes and the solver, so that only cases prove anything."""
    monkeypatch.setattr(Run, "_local", lambda self: None)
    monkeypatch.setattr(Run, "_pack", lambda self: None)
    monkeypatch.setattr(Run, "_master", lambda self: None)


def trained(seed, method="cut-h", **parameters):
    X, counts, depth, kappa, rows, y = rows_of(seed)
    data, labels = table(rows, y)
    penalty = {"leaf_penalty": float(kappa / counts.sum())} if kappa else {}
    request = TrainRequest(
        table=data, labels=labels, method=method, parameters=BARE | {"depth": depth} | penalty | parameters
    )
    return X, counts, depth, kappa, train(request).certificate


@seeds(30)
def test_cases_alone_find_and_prove_the_best_tree(alone, seed):
    X, counts, depth, kappa, found = trained(seed)
    best = best_value(X, counts, depth, kappa)
    assert found.status == "optimal"
    assert found.objective == pytest.approx(float(best / int(counts.sum())), abs=1e-9)
    assert found.bound == pytest.approx(found.objective, abs=1e-9)
    assert found.solver == "octweb"


@seeds(5)
def test_no_bound_on_the_way_is_too_good(alone, monkeypatch, seed):
    told = []
    own = BoundRaising.run
    monkeypatch.setattr(
        BoundRaising, "run", lambda self, bound, tell: own(self, bound, lambda b: (told.append(b), tell(b)))
    )
    X, counts, depth, kappa, _ = trained(seed, max_leaves=3)
    best = best_value(X, counts, depth, kappa, most=3)
    assert all(bound >= best - Fraction(1, 10**6) for bound in told)
    assert told == sorted(told, reverse=True)


@pytest.mark.parametrize(("method", "further"), [("oct-h", {"scaling": "range"}), ("s-oct", {"big_m": "data"})])
def test_cases_know_the_distance_that_planes_keep(alone, method, further):
    for seed in range(12):
        X, counts, depth, kappa, found = trained(seed, method, **further)
        if len(X) > 6:
            continue
        Z = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1)
        best = Fraction(best_in_class(Z, counts, depth, kappa, least=0.005)) / int(counts.sum())
        assert found.bound >= float(best) - 1e-9
        assert found.objective <= float(best) + 1e-9
        assert found.status == "optimal", seed


@pytest.mark.slow
def test_the_steps_of_the_search_are_the_proof(alone, monkeypatch, tmp_path):
    again = []
    own = proof_file.planes_proof
    monkeypatch.setattr("trainer.training.proof_file.planes_proof", lambda *asked: again.append(asked) or own(*asked))
    data, model, proof = (tmp_path / name for name in ("rows.csv", "model.json", "proof.gz"))
    for seed in range(6):
        draw = np.random.default_rng(seed)
        rows = np.column_stack([draw.integers(0, 5, (12, 2)) / 10, draw.integers(0, 2 + seed % 2, 12)])
        data.write_text("x,y,class\n" + "".join(f"{x},{y},k{k:.0f}\n" for x, y, k in rows))
        table, labels, *_ = load(data, target="class")
        parameters = BARE | {"depth": 1 + seed % 2, "leaf_penalty": 0.001, "then_fewest": seed > 2}
        save(
            train(TrainRequest(table=table, labels=labels, method="cut-h", parameters=parameters, proof=proof)).model,
            model,
        )
        assert next(f.verdict for f in verify(model, data, proof) if f.claim == "bound") == "proved"
    assert len(again) <= 2  # only a run that had no bound to raise computes its proof afterwards
