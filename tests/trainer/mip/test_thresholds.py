"""`oct` and `binoct` with thresholds in the model equal the exact search over all thresholds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from trainer.check.recount import refuted, verify
from trainer.data.encoding import Scheme, encode_binary
from trainer.errors import ParameterError
from trainer.families.mip import instance as instances
from trainer.families.mip.ladders import column_ladders, make_ladders
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table, numeric_table
from trainer.training.run import TrainRequest, save, train

INSIDE = {"oct": "variables", "binoct": "bits"}
ALL = {"depth": 2, "binarise": "all-thresholds"}


def rows(seed: int) -> tuple[np.ndarray, Labels]:
    """Return ten rows of two columns of few values, in halves."""
    r = np.random.default_rng(seed)
    return r.integers(0, 6, (10, 2)) / 2, Labels(
        name="y", classes=("a", "b"), codes=r.permutation([0, 1] * 5).astype(np.int32)
    )


def trained(X: np.ndarray, labels: Labels, method: str, **parameters):
    return train(TrainRequest(table=numeric_table(X), labels=labels, method=method, parameters=parameters))


@pytest.mark.parametrize("method", INSIDE)
def test_as_good_as_the_exact_search_over_all_thresholds(method, tmp_path):
    for seed in range(4):
        X, labels = rows(seed)
        price = {} if method == "binoct" else {"leaf_penalty": 0.05 * (seed % 2)}
        certificate = trained(X, labels, "exact-numeric", depth=2, **price).certificate
        result = trained(X, labels, method, **ALL, **price, thresholds=INSIDE[method])
        found = result.certificate
        assert (found.status, found.bound) == ("optimal", found.objective)
        assert found.objective == pytest.approx(certificate.objective, abs=1e-12)
        save(result.model, tmp_path / "model.json")
        lines = ["x0,x1,y", *(f"{x},{z},{labels.classes[k]}" for (x, z), k in zip(X, labels.codes, strict=True))]
        (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
        assert not refuted(verify(tmp_path / "model.json", tmp_path / "rows.csv"))


@pytest.mark.parametrize("method", INSIDE)
def test_categories_and_quantiles_are_ladders_too(method):
    X, labels = rows(7)
    colour = Column(
        schema=ColumnSchema(name="colour", kind=ColumnKind.CATEGORICAL, categories=("red", "green", "blue")),
        cells=np.arange(10.0) % 3,
    )
    table = Table(columns=(*numeric_table(X).columns, colour), row_numbers=np.arange(1, 11))
    values = []
    for thresholds in ("questions", INSIDE[method]):
        parameters = {"depth": 2, "bins": 3, "thresholds": thresholds}
        values.append(train(TrainRequest(table=table, labels=labels, method=method, parameters=parameters)).certificate)
    assert values[0].objective == values[1].objective == values[1].bound


@pytest.mark.parametrize("method", INSIDE)
def test_constraints_need_questions(method):
    X, labels = rows(1)
    with pytest.raises(ParameterError) as caught:
        trained(X, labels, method, **ALL, thresholds=INSIDE[method], max_leaves=3)
    assert "questions" in caught.value.errors["thresholds"]


def test_rows_for_each_question_need_questions():
    X, labels = rows(1)
    with pytest.raises(ParameterError) as caught:
        trained(X, labels, "oct", **ALL, thresholds="variables", single_features=True)
    assert "single_features" in caught.value.errors


@pytest.mark.parametrize("method", INSIDE)
def test_one_value_and_one_class_are_leaves(method):
    X, labels = rows(1)
    for table, codes in ((X * 0, labels.codes), (X, labels.codes * 0)):
        model = trained(
            table, Labels(name="y", classes=("a", "b"), codes=codes), method, **ALL, thresholds=INSIDE[method]
        )
        assert model.certificate.status == "optimal"
        assert model.certificate.objective == np.bincount(codes).max() / 10


def test_ranks_and_places_of_thresholds():
    X = np.array([[0.0, 5], [1, 5], [2, 7], [4, 5]])
    encoding = encode_binary(numeric_table(X), Scheme.ALL_THRESHOLDS)
    inst = instances.build(
        encoding.bits(numeric_table(X)),
        np.arange(4, dtype=np.int32),
        depth=1,
        kappa=Fraction(0),
        weight=np.ones(4, np.int64),
    )
    found = column_ladders(inst, encoding)
    assert [len(rungs) for rungs in found.rungs] == [3, 1]
    assert sorted(found.ranks[:, 0].tolist()) == [0, 1, 2, 3]
    for j, rungs in enumerate(found.rungs):
        for h, f in enumerate(rungs.tolist()):
            assert found.place(f) == (j, h)
            assert (inst.ones[:, f] == (found.ranks[:, j] > h)).all()
    with pytest.raises(ValueError, match="no ladder"):
        found.place(99)
    with pytest.raises(ValueError, match="among those"):
        make_ladders(inst, [found.rungs[0][::-1].tolist()])
