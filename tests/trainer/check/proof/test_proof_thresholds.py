"""Proofs at depth four with constraints over all thresholds agree with brute force, also as files."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.check.proof.proof_within_cases import document
from tests.trainer.check.proof.proofs_cases import accepted, never
from tests.trainer.exact.workbench_cases import Brute, random_wishes
from tests.trainer.oracles.workbench import random_table
from trainer.check.proof.model import ModelTable
from trainer.check.proof.space.space import read_space
from trainer.check.recount import verdict, verify
from trainer.data.reader import load
from trainer.families.exact.proofs.editing import restricted_proof
from trainer.families.exact.workbench import Workbench
from trainer.families.numeric.editing import proof as numeric
from trainer.families.numeric.editing.bench import NumericWorkbench
from trainer.families.numeric.editing.proof import numeric_proof
from trainer.families.numeric.restricted import as_questions
from trainer.methods.base import NotProved
from trainer.training.run import TrainRequest
from trainer.workbench.requests import WorkbenchSession


@seeds(90)
def test_deep_trees_with_wishes_are_proved_and_nothing_more(seed):
    problem = random_table(seed, max_rows=7)
    rng = np.random.default_rng(seed)
    bench = NumericWorkbench(problem, depth=4)
    texts = random_wishes(rng, problem, bench.space.questions)[:3]
    wishes = bench.wishes(texts)
    completion = bench.complete(texts, prices=False)
    if not completion.found:
        return
    assert completion.cost == Brute(problem, bench, wishes, 4).best(wishes)
    assert numeric_proof(bench, completion.bound, 4) is None  # the proof needs more than one step
    same = Workbench(as_questions(problem), depth=4)
    proof = restricted_proof(same, same.wishes([w.text for w in wishes]), completion.bound, 4, never)
    model = document(problem, 4, None, [w.text for w in wishes]) | {"method": "exact-numeric"}
    values = [np.asarray(c.values, float) for c in problem.table.columns]
    space = read_space(model, ModelTable(values, problem.y, problem.row_weights, problem.row_weights))
    head = {"format": "octweb-proof", "version": 2, "rows": space.digest, "scale": proof.scale, "goal": proof.goal}
    assert accepted(space, [head, *proof.steps]) == completion.cost
    assert accepted(space, [head | {"goal": proof.goal + proof.scale}, *proof.steps]) is None


def test_more_thresholds_than_are_proved_are_named(monkeypatch):
    monkeypatch.setattr(numeric, "MOST_QUESTIONS", 1)
    bench = NumericWorkbench(random_table(3, max_rows=9), depth=4)
    number = bench.space.questions.encoded
    with pytest.raises(NotProved, match=f"at most 1 thresholds of all columns together, but there are {number}"):
        numeric_proof(bench, Fraction(1), 4)


@pytest.fixture(scope="module")
def wished(tmp_path_factory):
    """Return model, table and proof of the best tree of depth four under an interval constraint, with codes."""
    folder = tmp_path_factory.mktemp("thresholds")
    rng = np.random.default_rng(3)
    x = rng.integers(0, 9, 24) / 4
    z = rng.integers(0, 4, 24)
    kind = np.where((x + z / 3 + (rng.random(24) < 0.3) > 1.5) ^ (x == 0.5), "yes", "no")
    data = folder / "rows.csv"
    proof = folder / "proof.jsonl.gz"
    data.write_text("\n".join(["x,z,kind", *(f"{a},{b},{k}" for a, b, k in zip(x, z, kind, strict=True))]) + "\n")
    table, labels, _ = load(data, target="kind", special={"z": (3.0,)})
    session = WorkbenchSession(
        TrainRequest(table=table, labels=labels, method="exact-numeric", parameters={"depth": 4})
    )
    monitor = session.monitor()
    completion = session.complete(["ask n x between 0.3 and 0.6", "avoid root x"], monitor)
    return json.loads(json.dumps(session.result(completion, monitor, proof).model.to_json())), data, proof


def test_deep_tree_with_interval_of_wish_is_proved(wished, tmp_path):
    model, data, proof = wished
    (tmp_path / "model.json").write_text(json.dumps(model))
    assert verdict(verify(tmp_path / "model.json", data, proof)) == "proved"


def test_interval_without_wish_is_refused(wished, tmp_path):
    model, data, proof = wished
    certificate = model["certificate"]
    for texts in (["avoid root x"], ["ask n x between 0.3 and 0.8", "avoid root x"]):
        wishes = [next(iter(certificate["wishes"])) | {"wish": text} for text in texts]
        changed = model | {"certificate": certificate | {"wishes": wishes}}
        (tmp_path / "model.json").write_text(json.dumps(changed))
        found = {f.claim: f.verdict for f in verify(tmp_path / "model.json", data, proof)}
        assert found["questions"] == "refuted", texts
