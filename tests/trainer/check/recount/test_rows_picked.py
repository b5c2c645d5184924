"""A file with hand-picked held-out rows or folds is never called proved, even if all numbers agree."""

from __future__ import annotations

import copy

import pytest

from tests.trainer.check.recount.files import findings, trained, verdicts
from trainer.check.recount import verdict
from trainer.errors import ModelFileError

METHODS = ("exact", "exact-numeric", "odt", "bivariate")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("share", "folds", "claim"), [(0.25, 0, "rows held out"), (0.0, 2, "folds")])
def test_rows_that_the_seed_does_not_give_are_not_proved(folder, tmp_path, method, share, folds, claim):
    document, data = trained(folder, method, test_share=share, folds=folds, seed=3, time_limit=2.0)
    assert verdicts(document, data, tmp_path)[claim] == "recounted"
    # the file now looks as if the rows were picked by hand, but all that follows from them is true
    document["parameters"]["seed"] = 0
    assert verdicts(document, data, tmp_path)[claim] == "cannot be judged"
    assert verdict(findings(document, data, tmp_path)) == "recounted"


@pytest.mark.parametrize(
    ("own", "other"),
    [({"depth": 1}, {"depth": 3}), ({"max_leaves": 2}, {}), ({"forbidden": "length"}, {}), ({"bins": 2}, {})],
)
def test_fold_tree_outside_the_parameters_is_refuted(folder, tmp_path, own, other):
    document, data = trained(folder, "exact", folds=2, **own)
    assert verdicts(document, data, tmp_path)["metrics cross_validation"] == "recounted"
    better, _ = trained(folder, "exact", folds=2, **other)
    document["rows"] = better["rows"]
    document["metrics"]["cross_validation"] = better["metrics"]["cross_validation"]
    assert verdicts(better, data, tmp_path)["metrics cross_validation"] == "recounted"
    assert verdicts(document, data, tmp_path)["metrics cross_validation"] == "refuted"


def test_mean_of_some_folds_is_refuted(folder, tmp_path):
    document, data = trained(folder, "exact", folds=3)
    given = document["metrics"]["cross_validation"]
    trees = document["rows"]["fold_trees"]
    some = copy.deepcopy(document)
    some["rows"]["fold_trees"] = trees[:2]
    accuracies = given["accuracies"][:2]
    ended = {"folds": 3, "finished": 2, "accuracies": accuracies, "ended": "fold 3 of 3: no tree"}
    some["metrics"]["cross_validation"] = ended
    assert verdicts(some, data, tmp_path)["metrics cross_validation"] == "recounted"
    deviation = abs(accuracies[0] - accuracies[1]) / 2**0.5
    ended |= {"accuracy": sum(accuracies) / 2, "deviation": deviation}
    assert verdicts(some, data, tmp_path)["metrics cross_validation"] == "refuted"
    del given["accuracy"]
    given["deviation"] = 0.0
    with pytest.raises(ModelFileError, match="accuracy"):
        findings(document, data, tmp_path)


def test_each_class_is_dealt_out_evenly_and_each_row_has_a_sign(folder, tmp_path):
    document, data = trained(folder, "exact", test_share=0.25, folds=2)
    kept = document["rows"]
    n = len(kept["folds"])
    parts = document | {"rows": kept | {"folds": "".join("01"[i // 8 % 2] for i in range(n))}}
    assert verdicts(parts, data, tmp_path)["folds"] == "refuted"
    for odd in (
        {"rows": kept | {"held_out": kept["held_out"].replace("0", "x", 1)}},
        {"parameters": {"test_share": 5}},
    ):
        parameters = document["parameters"] | odd.get("parameters", {})
        with pytest.raises(ModelFileError):
            findings(document | {"rows": kept} | odd | {"parameters": parameters}, data, tmp_path)


@pytest.mark.parametrize(
    ("edit", "claim"),
    [
        (lambda d: d["metrics"]["test"].update(auc=0.99), "metrics test auc"),
        (lambda d: d["metrics"]["cross_validation"].update(f1=0.99), "metrics cross_validation f1"),
        (lambda d: d["rows"].update(drawn="by a notary"), "rows drawn"),
        (lambda d: [node.update(p=0.01) for node in d["nodes"]], "nodes p"),
    ],
)
def test_unchecked_texts_are_named(folder, tmp_path, edit, claim):
    document, data = trained(folder, "exact", test_share=0.25, folds=2)
    edit(document)
    said = findings(document, data, tmp_path)
    assert [f.verdict for f in said if f.claim == claim] == ["cannot be judged"]
    assert verdict(said) == "recounted"


def test_fold_trees_are_counted_without_accuracies(folder, tmp_path):
    document, data = trained(folder, "exact", folds=2)
    del document["metrics"]["cross_validation"]
    assert verdicts(document, data, tmp_path)["metrics cross_validation"] == "recounted"
    document["rows"]["fold_trees"][0][0]["counts"][0] += 1
    assert verdicts(document, data, tmp_path)["metrics cross_validation"] == "refuted"
