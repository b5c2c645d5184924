"""Recalls and forbidden pairs from counts give the trees of `exact` over the rows."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trainer.counts.counts_cases import of_rows
from tests.trainer.counts.tables import KEY, counted, random_rows, write_rows
from trainer.certificate import Status
from trainer.check.recount import verdict, verify
from trainer.counts.folder import suppress_small
from trainer.counts.frontier import leaf_frontier
from trainer.counts.train import train_counts
from trainer.errors import InfeasibleError, ParameterError
from trainer.tree.file import write


def restricted(rng: np.random.Generator, seed: int) -> dict[str, Any]:
    """Return random recalls and pairs, some with a smallest leaf or a limit of leaves."""
    classes = 2 + seed % 2
    shares = [f"c{k}: {rng.choice(['0.5', '0.8', '0.9', '1'])}" for k in rng.permutation(classes)[: 1 + seed % 2]]
    settings: dict[str, Any] = {"leaf_penalty": float(rng.choice([0, 0.01, 0.03])), "recall": "; ".join(shares)}
    if seed % 3 == 1:
        settings["forbidden_pairs"] = "a+b; b+c"
    if seed % 7 == 6:
        settings |= {"forbidden_pairs": "b+c; c+colour", "recall": ""}
    if seed % 5 == 1:
        settings["min_leaf"] = 3
    if seed % 5 == 2:
        settings["max_leaves"] = 3
    return settings


def outcome(train: Any) -> tuple[Fraction, int] | str:
    """Return the rounded objective and the leaves of a training, or why there is no tree."""
    try:
        certificate = train()
    except InfeasibleError as error:
        return str(error)
    assert certificate.status is Status.OPTIMAL
    return round(Fraction(certificate.objective), 12), certificate.leaves


def compare(folder: Path, seed: int) -> str | tuple[Fraction, int]:
    """Train from rows and from counts, and check the model with and without its proof; return the outcome."""
    rng = np.random.default_rng(seed)
    path = write_rows(random_rows(rng, classes=2 + seed % 2), folder / "rows.csv")
    depth = 1 + seed % 3
    counts = counted(path, folder / "counts", depth=depth, **({"folds": 3, "key": KEY} if seed % 4 == 0 else {}))
    settings = restricted(rng, seed)
    found = outcome(lambda: train_counts(counts, settings).certificate)
    assert found == outcome(lambda: of_rows(path, depth, **settings).certificate), (seed, settings)
    if isinstance(found, tuple):
        write(train_counts(counts, settings, proof=folder / "proof.jsonl.gz").model, folder / "model.json")
        for proof in (None, folder / "proof.jsonl.gz"):
            assert verdict(verify(folder / "model.json", folder / "counts", proof)) == "proved", (seed, settings)
    return found


def test_recalls_and_pairs_equal_those_of_rows(tmp_path):
    outcomes = [compare(tmp_path / str(seed), seed) for seed in range(4)]
    assert any(isinstance(one, tuple) for one in outcomes)


@pytest.mark.slow
def test_random_recalls_and_pairs_equal_those_of_rows(tmp_path, count):
    outcomes = [compare(tmp_path / str(seed), seed) for seed in range(4, 4 + 15 * count)]
    assert {type(one) for one in outcomes} == {str, tuple}


def test_lies_about_recalls_and_pairs_are_refuted(tmp_path):
    path = write_rows(random_rows(np.random.default_rng(12)), tmp_path / "rows.csv")
    counts = counted(path, tmp_path / "counts")
    plain = train_counts(counts, {"leaf_penalty": 0.01}).model.to_json()
    settings = {"leaf_penalty": 0.01, "recall": "c0: 0.95", "forbidden_pairs": "b+c"}
    honest = train_counts(counts, settings).model.to_json()
    assert honest["certificate"]["objective"] < plain["certificate"]["objective"]
    free = json.loads(json.dumps(honest))
    free["parameters"] |= {"recall": "", "forbidden_pairs": ""}
    free["certificate"]["scope"] = plain["certificate"]["scope"]
    claimed = json.loads(json.dumps(plain))
    claimed["parameters"] |= {"recall": "c0: 0.95", "forbidden_pairs": "b+c"}
    claimed["certificate"]["scope"] = honest["certificate"]["scope"]
    unknown = json.loads(json.dumps(plain))
    unknown["parameters"]["monotone"] = "a up"
    verdicts = []
    for document in (honest, free, claimed, unknown):
        (tmp_path / "model.json").write_text(json.dumps(document), encoding="utf-8")
        verdicts.append(verdict(verify(tmp_path / "model.json", tmp_path / "counts")))
    assert verdicts == ["proved", "refuted", "refuted", "refuted"]


def test_recalls_that_counts_do_not_show_are_refused(tmp_path):
    counts = counted(write_rows(random_rows(np.random.default_rng(1)), tmp_path / "rows.csv"), tmp_path / "counts")
    with pytest.raises(ParameterError, match="together with costs"):
        train_counts(counts, {"recall": "c0: 0.9", "costs": "c0>c1=5"})
    with pytest.raises(ParameterError, match="secret"):
        train_counts(suppress_small(counts, 3), {"forbidden_pairs": "a+b"})
    with pytest.raises(ParameterError, match="frontier"):
        leaf_frontier(counts, {"recall": "c0: 0.9"})
    with pytest.raises(ParameterError, match="forbidden_pairs"):
        train_counts(counts, {"forbidden_pairs": "a+nothing"})
