"""Proofs of mixed-integer methods: for the splits of every encoding, and for bounds that are not reached."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trainer.check.proof.changes import page
from tests.trainer.check.proof.proofs_cases import accepted, cost, never, prices, with_header
from trainer.check.proof.subject import ProofSpace
from trainer.check.recount import Finding, verify
from trainer.data.reader import load
from trainer.errors import DataError, ModelFileError
from trainer.families.exact.search.solve import prove_binary, solve_binary
from trainer.solver_common.binary_problem import BinaryProblem
from trainer.training.proof_file import ProofLimits
from trainer.training.run import TrainRequest, TrainResult, save, train


def trained(folder: Path, text: str, method: str, **parameters: Any) -> tuple[TrainResult, list[Path]]:
    """Return a training with its files: model, data, proof."""
    paths = [folder / name for name in ("model.json", "rows.csv", "proof.jsonl")]
    paths[1].write_text(text)
    table, labels, *_ = load(paths[1], target="class")
    limits = ProofLimits(seconds=60.0)
    request = TrainRequest(
        table=table, labels=labels, method=method, parameters=parameters, proof=paths[2], proof_limits=limits
    )
    result = train(request)
    save(result.model, paths[0])
    return result, paths


def bound_of(found: list[Finding]) -> str:
    return next(f.verdict for f in found if f.claim == "bound")


def answers_and_colours(seed: int) -> str:
    """Return a table of yes/no answers and categories, without other numbers."""
    rng = np.random.default_rng(seed)
    lines = ["first,second,third,colour,class"]
    for _ in range(30):
        a, b, c = rng.integers(0, 2, 3)
        colour = rng.choice(["red", "green", "blue"])
        lines.append(f"{a},{b},{c},{colour},{'xyz'[int(a + (colour == 'red') * b + (rng.random() < 0.2)) % 3]}")
    return "\n".join(lines) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exact", "flowoct", "bendoct", "bendoct-accelerated", "oct", "binoct"])
def test_columns_that_need_no_encoding_have_questions_as_well(method, tmp_path):
    result, (model, data, proof) = trained(tmp_path, answers_and_colours(3), method, depth=2, binarise="none")
    assert bound_of(verify(model, data, proof)) == "proved"
    lines = gzip.decompress(proof.read_bytes()).decode().splitlines()
    head = json.loads(lines[0])
    more = json.dumps(head | {"goal": head["goal"] + 1})
    texts = ["\n".join(lines), "\n".join([more, *lines[1:]])]
    assert page([(model.read_text(), text, data.read_text()) for text in texts]) == [True, False]
    proof.write_text(texts[1])
    assert any(f.verdict == "refuted" for f in verify(model, data, proof))
    assert result.certificate.status == "optimal"


def test_numbers_are_not_asked_without_an_encoding(tmp_path):
    """Such a file describes no trees, so no checker accepts its proof."""
    text = answers_and_colours(4).replace("\n1,", "\n2,")
    _, (model, data, proof) = trained(tmp_path, text, "exact", depth=2)
    document = json.loads(model.read_text())
    document["parameters"]["binarise"] = "none"
    changed = json.dumps(document)
    steps = gzip.decompress(proof.read_bytes()).decode()
    assert page([(said, steps, data.read_text()) for said in (model.read_text(), changed)]) == [True, False]
    model.write_text(changed)
    with pytest.raises(ModelFileError, match="may only have the values 0 and 1"):
        verify(model, data, proof)


def noise(seed: int) -> str:
    """Return distinct rows whose best trees are hard to find."""
    rng = np.random.default_rng(seed)
    X = rng.random((150, 6)).round(3)
    rows = (",".join([*map(str, x), "ab"[k]]) for x, k in zip(X, rng.integers(0, 2, len(X)), strict=True))
    return "\n".join([",".join([*"uvwxyz", "class"]), *rows]) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "status"), [({"mip_gap": 1.0}, "optimal"), ({"time_limit": 0.5}, "time_limit")])
def test_bound_that_is_not_met_needs_no_further_check(limit, status, tmp_path):
    """The proof of the optimum would have hundreds of steps."""
    result, (model, data, proof) = trained(tmp_path, noise(1), "bendoct", depth=5, leaf_penalty=0.01, **limit)
    claim = result.certificate
    assert claim.status == status
    assert claim.bound is not None
    assert claim.bound > claim.objective + 0.1
    assert result.summary["proof"]["steps"] < 10
    assert bound_of(verify(model, data, proof)) == "proved"
    document = json.loads(model.read_text())
    objective = document["certificate"]["objective"]
    document["certificate"] |= {"bound": objective, "gap": 0.0, "status": "optimal"}
    model.write_text(json.dumps(document))
    assert bound_of(verify(model, data, proof)) != "proved"


@pytest.mark.parametrize("seed", range(12))
def test_any_bound_is_proved_up_to_the_optimum(seed):
    rng = np.random.default_rng(seed)
    depth = 2 + seed % 3
    m = 4
    n = int(rng.integers(10, 24))
    X = rng.integers(0, 2, (n, m)).astype(np.uint8)
    y = rng.integers(0, 2 + seed % 2, n).astype(np.int32)
    weights = rng.integers(1, 4, n).astype(np.int64) if seed % 3 == 0 else None
    price = Fraction(int(rng.integers(0, 3)), 2)
    least = 1 + 2 * (seed % 4 == 0)
    common: dict[str, Any] = {
        "n_classes": 3, "depth": depth, "leaf_cost": price, "weights": weights, "min_leaf": least,
    }  # fmt: skip
    best = solve_binary(BinaryProblem(X, y, **common)).cost
    heavy = np.ones(n, np.int64) if weights is None else weights
    space = ProofSpace("questions", X > 0, y, heavy, 3, depth, price, least, None, np.ones(m, bool), None, "rows")
    for asked in (Fraction(0), best / 2, best - Fraction(1, 2), best, best + 1):
        proof = prove_binary(BinaryProblem(X, y, **common), asked, stop=never)
        assert proof is not None
        lines = with_header(proof)
        shown = accepted(space, lines)
        assert shown is not None
        assert min(asked, best) <= shown <= best
        least_cost = cost(space, *prices(space, lines), [], depth)
        assert lines[0]["goal"] <= least_cost
        assert accepted(space, [lines[0] | {"goal": least_cost + 1}, *lines[1:]]) is None


def test_more_questions_than_can_be_counted_do_not_lose_the_tree(tmp_path, monkeypatch):
    """The exact search refuses so many features, and the file says why it has no proof."""

    def refused(*_: Any, **__: Any) -> None:
        raise DataError("Too many questions to count.")

    monkeypatch.setattr("trainer.training.proof_file.prove_binary", refused)
    result, (model, data, proof) = trained(tmp_path, answers_and_colours(3), "oct", depth=1)
    assert result.certificate.status == "optimal"
    assert result.summary["proof"] == {"kind": "proof", "made": False, "reason": "Too many questions to count."}
    assert not proof.exists()
    assert bound_of(verify(model, data)) == "proved"


@pytest.mark.parametrize("seed", range(8))
def test_bound_of_equal_rows_and_classes_needs_no_search(seed, monkeypatch):
    """Both state the checker's lower bound without counting, for any number of features."""
    monkeypatch.setattr("trainer.families.exact.search.solve.ExactSearch", None)
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (40, 4)).astype(np.uint8)
    y = rng.integers(0, 2 + seed % 3, 40).astype(np.int32)
    weights = rng.integers(0, 3, 40).astype(np.int64)
    price = Fraction(seed % 3, 2)
    depth = 1 + seed % 4
    space = ProofSpace("questions", X > 0, y, weights, 4, depth, price, 1, None, np.ones(4, bool), None, "rows")
    space = replace(space, X=space.X[weights > 0], labels=y[weights > 0], weights=weights[weights > 0])
    common: dict[str, Any] = {"n_classes": 4, "depth": depth, "leaf_cost": price, "weights": weights, "min_leaf": 1}
    proof = prove_binary(BinaryProblem(X, y, **common), Fraction(0), stop=never)
    assert proof is not None
    assert proof.steps == []
    lines = with_header(proof)
    shown = accepted(space, lines)
    assert shown is not None
    assert accepted(space, [lines[0] | {"goal": proof.goal + 1}]) is None
    assert prove_binary(BinaryProblem(X, y, **common), shown, stop=never) == proof
    with pytest.raises(TypeError):
        prove_binary(BinaryProblem(X, y, **common), shown + 1, stop=never)
