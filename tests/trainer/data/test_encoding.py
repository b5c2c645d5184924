"""The encoding reproduces the published binary tables exactly: entries, names and order."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from tests.conftest import bench_data
from trainer.data.encoding import Scheme, encode_binary, published_names
from trainer.data.reader import load
from trainer.errors import DataError
from trainer.table import ColumnKind, MissingPolicy, numeric_table

pytestmark = pytest.mark.bench_data
SCHEMES = {"QB_5": Scheme.QUANTILE_BUCKETS, "QT_5": Scheme.QUANTILE_THRESHOLDS, "": Scheme.NONE}


def published() -> list[tuple[str, str]]:
    files = sorted((bench_data() / "encoded").glob("*_enc.csv.gz"))
    names = [f.name.removesuffix("_enc.csv.gz") for f in files if not f.name.startswith("fico")]
    return [(n[:-5], n[-4:]) if n.endswith(("_QB_5", "_QT_5")) else (n, "") for n in names]


def manifest_of(folder, name: str) -> dict:
    return next(s for s in json.loads((folder / "manifest.json").read_text()) if s["name"] == name)


@pytest.mark.parametrize(("name", "scheme"), published())
def test_published_encoding_is_rebuilt(data_folder, name, scheme):
    path = data_folder / "encoded" / (f"{name}_{scheme}_enc.csv.gz" if scheme else f"{name}_enc.csv.gz")
    with gzip.open(path, "rt") as stream:
        names = stream.readline().strip().split(",")
        expected = np.loadtxt(stream, delimiter=",")
    if not (data_folder / f"{name}.csv").exists():
        name += "-coded"
    entry = manifest_of(data_folder, "car_evaluation-coded" if name == "car_evaluation" else name)
    paper = entry["paper_002"]
    kinds = dict.fromkeys(paper["numeric"], ColumnKind.NUMERIC) | dict.fromkeys(
        paper["one_hot"], ColumnKind.CATEGORICAL
    )
    # The paper removed the constant second column of ionosphere before it counted the columns.
    ignore = ["pulse1_im"] if name == "ionosphere" else []
    table, labels, _ = load(
        data_folder / entry["file"], target="class", kinds=kinds, ignore=ignore, default_missing=MissingPolicy.DROP
    )

    encoding = encode_binary(table, SCHEMES[scheme], 5)
    assert [*published_names(encoding), "target"] == names
    bits = encoding.bits(table)
    assert bits.shape == (len(expected), expected.shape[1] - 1)
    assert int((bits != expected[:, :-1]).sum()) == 0
    classes = [labels.classes[c] for c in labels.codes]
    assert [paper["class_codes"][c] for c in classes] == expected[:, -1].astype(int).tolist()


def test_every_published_table_is_compared(data_folder):
    assert len(published()) == 35


@pytest.mark.parametrize("scheme", [s for s in Scheme if s is not Scheme.NONE])
def test_a_weight_is_that_many_equal_rows(scheme):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        values = rng.integers(0, 9, 12) / 4
        weights = rng.integers(0, 5, 12)
        weights[:2] = 1
        values[:2] = (-1.0, 7.0)
        one = numeric_table(values[:, None])
        many = numeric_table(np.repeat(values, weights)[:, None])
        assert encode_binary(one, scheme, 5, weights).features == encode_binary(many, scheme, 5).features, seed


def test_all_thresholds_separate_every_pair_of_values():
    values = np.array([3.0, 1.0, np.nextafter(1.0, 2.0), 3.0, -1e308, 1e308])
    encoding = encode_binary(numeric_table(values[:, None]), Scheme.ALL_THRESHOLDS)
    bits = encoding.bits(numeric_table(values[:, None]))
    distinct = np.unique(values)
    assert bits.shape == (len(values), len(distinct) - 1)
    assert (bits.sum(axis=1) == np.searchsorted(distinct, values)).all()
    assert len({feature.name for feature in encoding.features}) == len(encoding.features)


def test_too_many_thresholds_are_refused_with_what_to_do():
    with pytest.raises(DataError, match="Set 'binarise' to quantile-thresholds"):
        encode_binary(numeric_table(np.arange(8000.0)[:, None]), Scheme.ALL_THRESHOLDS)
