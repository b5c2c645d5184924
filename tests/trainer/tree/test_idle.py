"""Idle splits equal a count in plain Python, and the checker accepts files without them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.check.recount.files import csv_text
from tests.trainer.random_trees import random_matrix, random_tree
from trainer.check.recount import verdict, verify
from trainer.data.reader import load
from trainer.errors import ModelFileError
from trainer.training.run import TrainRequest, train
from trainer.tree.file import ModelFile, from_json
from trainer.tree.idle import idle_questions, pruned, without_idle


def answers_below(tree, node):
    v = tree.nodes[node]
    return {v.label} if v.is_leaf else answers_below(tree, v.left) | answers_below(tree, v.right)


@seeds(120)
def test_every_row_gets_the_class_that_it_got_before(seed):
    tree, matrix = random_tree(seed)
    idle = idle_questions(tree)
    assert idle == {v.id for v in tree.branches if len(answers_below(tree, v.id)) == 1}
    smaller = without_idle(tree)
    assert not idle_questions(smaller)
    assert len(smaller.branches) == len(tree.branches) - len(idle)
    for rows in (matrix, random_matrix(np.random.default_rng(seed), tree.schema, 60, holes=True)):
        assert smaller.predict(rows).tolist() == tree.predict(rows).tolist()
    for v in smaller.branches:  # nodes are numbered breadth first, and the counts still add up
        assert v.right == v.left + 1
        sums = [a + b for a, b in zip(smaller.nodes[v.left].counts, smaller.nodes[v.right].counts, strict=True)]
        assert sums == list(v.counts)


def test_the_random_trees_have_idle_questions_below_each_other():
    found = [idle_questions(random_tree(seed)[0]) for seed in range(120)]
    assert sum(map(len, found)) > 60
    assert sum(not idle for idle in found) > 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "asked"),
    [
        ("cart", {"depth": 5, "leaf_penalty": "0.01"}),
        ("cart", {"depth": 5}),
        ("oc1", {"depth": 7}),
        ("bivariate", {"depth": 4}),
    ],
)
def test_the_checker_agrees_with_the_smaller_file(tmp_path, method, asked):
    model, data = trained(tmp_path, method, pruning="0", min_leaf=1, **asked)
    before = verdict(verify(written(model, tmp_path), data))
    idle = idle_questions(model.tree)
    assert idle
    smaller = pruned(model)
    findings = verify(written(smaller, tmp_path), data)
    assert verdict(findings) == before, [f for f in findings if f.verdict not in ("recounted", "proved")]
    certificate = smaller.certificate
    assert (certificate["leaves"], certificate["depth"]) == (smaller.tree.n_leaves, smaller.tree.depth)
    assert certificate["correct"] == model.certificate["correct"]
    gained = float(asked.get("leaf_penalty", 0)) * (model.tree.n_leaves - smaller.tree.n_leaves)
    assert certificate["objective"] == pytest.approx(model.certificate["objective"] + gained, abs=1e-12)
    if method == "bivariate":
        assert certificate["splits"] == len(smaller.tree.branches) >= certificate["splits_proved"] > 0
    with pytest.raises(ModelFileError, match="each of them changes an answer"):
        pruned(smaller)
    assert "were removed" in certificate["note"]


def trained(folder, method, **asked):
    """Return a model with held-out rows and folds, and its table with many noisy classes."""
    data = folder / "rows.csv"
    data.write_text(csv_text(rows=160))
    table, labels, *_ = load(data, target="class")
    request = TrainRequest(table=table, labels=labels, method=method, parameters=asked, test_share=0.25, folds=3)
    return from_json(train(request).model.to_json()), data


def written(model: ModelFile, folder):
    path = folder / "model.json"
    path.write_text(json.dumps(model.to_json()))
    return path


def test_whole_tree_claim_is_unchanged(tmp_path):
    model, _ = trained(tmp_path, "exact", depth=2)
    with pytest.raises(ModelFileError, match="whole tree is optimal"):
        pruned(model)


@pytest.mark.parametrize("price", ["much", "1/0"])
def test_a_price_that_is_no_number_is_refused(tmp_path, price):
    model, _ = trained(tmp_path, "cart", depth=5, pruning="0", min_leaf=1)
    with pytest.raises(ModelFileError, match="leaf penalty"):
        pruned(replace(model, certificate=dict(model.certificate) | {"leaf_penalty": price}))
    del (bare := dict(model.certificate))["correct"]
    assert pruned(replace(model, certificate=bare | {"leaf_penalty": "0.01"})).certificate["objective"] < 1
