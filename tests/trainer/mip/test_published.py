"""Published optima are met and never passed: accel_oct_instances.csv (Keegan et al.) and strongtree_results.csv (Aghaei, Gomez & Vayanos)."""

from __future__ import annotations

import csv
import gzip
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from trainer.families.mip import greedy
from trainer.families.mip import instance as instances
from trainer.families.mip.bendoct import BendOCT
from trainer.families.mip.bendoct_accelerated import AcceleratedBendOCT
from trainer.families.mip.binoct import BinOCT
from trainer.families.mip.first_tree import make_start
from trainer.families.mip.flowoct import FlowOCT
from trainer.families.mip.oct import OCT
from trainer.families.mip.tree_mip import optimise
from trainer.milo import BACKENDS, backend

SEEDS = (41, 23, 45, 36, 19)
SMALL = (
    "monk1",
    "monk2",
    "monk3",
    "soybean-small",
    "iris_QB_5",
    "iris_QT_5",
    "balance-scale",
    "tic-tac-toe",
    "breast-cancer",
)

pytestmark = pytest.mark.bench_data


def table(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    with gzip.open(folder / "encoded" / f"{name}_enc.csv.gz", "rt") as lines:
        cells = np.loadtxt(lines, delimiter=",", skiprows=1)
    return cells[:, :-1].astype(np.uint8), cells[:, -1].astype(np.int32)


def published(folder: Path, name: str, depth: int) -> list[dict[str, str]]:
    dataset, _, encoding = name.removesuffix("_5").partition("_")
    with (folder / "published" / "accel_oct_instances.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    chosen = [r for r in rows if (r["dataset"], r["encoding"], r["depth"]) == (dataset, encoding or "none", str(depth))]
    assert chosen
    return chosen


def assert_proved_as_published(
    folder: Path, name: str, depth: int, record: dict[str, str], formulation=AcceleratedBendOCT
) -> None:
    X, y = table(folder, name)
    inst = instances.build(X, y, depth=depth, kappa=Fraction(record["lambda"]) * len(y))
    form = formulation(inst)
    optimum = optimise(form, backend("scip"), starts=form.improve_starts([greedy.cart(inst)]))
    objective = float(optimum.value / inst.total)
    assert optimum.optimal
    assert objective == pytest.approx(float(record["best_objective"]), abs=1e-6) or (
        record["solved_runs"] == "0" and objective > float(record["best_objective"])
    )
    assert objective <= float(record["best_bound"]) + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", SMALL)
def test_accelerated_meets_the_optima_of_the_paper(data_folder, name, depth):
    for record in published(data_folder, name, depth)[::13]:
        assert_proved_as_published(data_folder, name, depth, record)


@pytest.mark.slow
@pytest.mark.parametrize("formulation", [FlowOCT, BendOCT, AcceleratedBendOCT])
@pytest.mark.parametrize("name", ["monk3", "soybean-small", "iris_QT_5"])
def test_flowoct_bendoct_and_accelerated_agree_at_depth_two(data_folder, name, formulation):
    records = [record for record in published(data_folder, name, 2) if float(record["lambda"]) >= 0.02]
    # the other two need ten seconds for some records
    for record in records[:: 2 if formulation is AcceleratedBendOCT else 4]:
        assert_proved_as_published(data_folder, name, 2, record, formulation)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [name for name in BACKENDS if name != "scip"])
@pytest.mark.parametrize("name", SMALL)
def test_every_other_solver_proves_what_the_exact_search_proves(data_folder, name, solver):
    X, y = table(data_folder, name)
    for depth in (2, 3):
        inst = instances.build(X, y, depth=depth, kappa=Fraction(1, 50) * len(y))
        form = AcceleratedBendOCT(inst)
        optimum = optimise(form, backend(solver), starts=form.improve_starts([greedy.cart(inst)]))
        assert optimum.value == optimum.bound == make_start(inst, "exact", 6000.0).bound, (name, depth)


@pytest.mark.slow
def test_oct_and_binoct_prove_what_the_exact_search_proves(data_folder):
    """BinOCT has complete trees and no leaf price. Every second record is used, because these models are slow."""
    X, y = (cells[::2] for cells in table(data_folder, "iris_QT_5"))
    for formulation, penalty in ((OCT, Fraction(1, 50)), (BinOCT, Fraction(0))):
        inst = instances.build(X, y, depth=2, kappa=penalty * len(y))
        optimum = optimise(formulation(inst), backend("scip"), starts=[greedy.cart(inst)])
        assert optimum.value == optimum.bound == make_start(inst, "exact", 6000.0).bound, formulation


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_accelerated_proves_what_the_exact_search_proves(data_folder, name):
    """Each is solved from CART with its own bounds, and then with tree and bound of the exact search."""
    X, y = table(data_folder, name)
    for depth, penalty in ((2, Fraction(1, 50)), (2, Fraction(1, 400)), (3, Fraction(1, 50)), (3, Fraction(1, 400))):
        inst = instances.build(X, y, depth=depth, kappa=penalty * len(y))
        exact = make_start(inst, "exact", 6000.0)
        assert inst.value(exact.trees[0]) == exact.bound
        form = AcceleratedBendOCT(inst)
        optimum = optimise(form, backend("scip"), starts=form.improve_starts([greedy.cart(inst)]))
        assert optimum.value == optimum.bound == exact.bound, (name, depth, penalty)
        form = AcceleratedBendOCT(inst)
        helped = optimise(form, backend("scip"), starts=form.improve_starts(exact.trees), known=exact.bound)
        assert helped.value == helped.bound == exact.bound
        assert helped.outcome.nodes <= 1


def strongtree(folder: Path, dataset: str, depth: int) -> list[dict[str, str]]:
    with (folder / "published" / "strongtree_results.csv").open() as lines:
        return [
            r
            for r in csv.DictReader(lines)
            if r["approach"] == "BendersOCT"
            and r["status"] == "2"
            and (r["dataset"], r["depth"]) == (dataset, str(depth))
        ]


@pytest.mark.parametrize("dataset", ["monk1", "monk3", "soybean-small", "tic-tac-toe"])
@pytest.mark.parametrize("depth", [2, 3])
def test_the_optima_of_strongtree_are_met(data_folder, dataset, depth):
    """The objective is -(1 - lambda) errors - lambda branchings, on the reconstructed splits."""
    X, y = table(data_folder, dataset)
    records = strongtree(data_folder, dataset, depth)[::13]
    if dataset != "tic-tac-toe" or depth == 2:
        assert records
    for record in records:
        rows = np.arange(len(y))
        seed = SEEDS[int(record["sample"]) - 1]
        rows, _ = train_test_split(rows, test_size=0.25, random_state=seed)
        if record["phase"] == "calibration":
            rows, _ = train_test_split(rows, test_size=0.33, random_state=seed)
        assert len(rows) == int(record["nrow"])
        paper = Fraction(record["lambda"])
        inst = instances.build(X[rows], y[rows], depth=depth, kappa=paper / (1 - paper))
        form = AcceleratedBendOCT(inst)
        optimum = optimise(form, backend("scip"), starts=form.improve_starts([greedy.cart(inst)]))
        assert optimum.optimal
        # Z_kappa = correct - kappa leaves. The published objective is (1 - lambda) (Z_kappa + kappa - n).
        objective = float((1 - paper) * (optimum.value + inst.kappa - inst.total))
        assert objective == pytest.approx(float(record["obj_value"]), abs=1e-4)
