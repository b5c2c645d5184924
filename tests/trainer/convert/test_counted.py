"""A converted tree on a table: names, counts that `verify` confirms, and the comparison with the optimum."""

from __future__ import annotations

import json

import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from trainer.check.recount import verdict, verify
from trainer.convert import convert, count_rows, fitted_to, form_of, from_sklearn, rival
from trainer.convert.source import ConvertedTree
from trainer.data.formats.read_file import read_table
from trainer.data.reader import build_as_read, reading_of
from trainer.errors import ConversionError, DataError, TrainerError
from trainer.table import MISSING_CATEGORY, Labels, numeric_table
from trainer.training.run import TrainRequest, train
from trainer.tree.export.pmml import to_pmml
from trainer.tree.file import write
from trainer.tree.nodes import DraftBranch, DraftLeaf, grow
from trainer.tree.splits import Threshold

SMALL = {
    "n_estimators": 1,
    "min_child_samples": 2,
    "min_data_per_group": 1,
    "cat_smooth": 1.0,
    "verbose": -1,
    "n_jobs": 1,
}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    found = pd.DataFrame(
        {
            "cap width": rng.normal(size=300).round(2),
            "odor": rng.choice(["foul", "almond", "anise", None], 300),
            "name": [f"row {i}" for i in range(300)],
            "count": rng.integers(0, 9, 300),
        }
    )
    yes = (found["cap width"] > 0) ^ found["odor"].isin(["foul", "anise"]) ^ (rng.random(300) < 0.1)
    return found.assign(edible=np.where(yes, "yes", "no"))


@pytest.fixture(scope="module")
def text(frame) -> bytes:
    X = frame[["cap width", "count", "odor"]].astype({"odor": "category"})
    model = lightgbm.LGBMClassifier(num_leaves=5, learning_rate=1.0, **SMALL).fit(X, frame["edible"])
    return model.booster_.model_to_string().encode()


def raw_of(frame: pd.DataFrame, path):
    frame.to_csv(path, index=False)
    raw = read_table(path)
    return raw, reading_of(raw)


def test_verify_recounts_a_converted_file(frame, text, tmp_path):
    raw, reading = raw_of(frame, tmp_path / "rows.csv")
    model = count_rows(
        convert(text, form_of(text), classes=["no", "yes"]), raw, reading, target="edible", name="mushrooms"
    )
    # LightGBM writes cap_width, so the name must be restored
    assert [c.name for c in model.tree.schema] == ["cap width", "count", "odor"]
    assert model.certificate["guarantee"] == model.certificate["status"] == "heuristic"
    assert model.certificate["bound"] is None
    assert model.metrics["train"]["n"] == 300  # rows without an odor count, because missing is a category
    assert MISSING_CATEGORY in model.tree.schema[2].categories
    X = frame[["cap width", "count", "odor"]].astype({"odor": "category"})
    said = lightgbm.Booster(model_str=text.decode()).predict(X) > 0.5
    assert model.metrics["train"]["correct"] == int((np.where(said, "yes", "no") == frame["edible"]).sum())
    write(model, tmp_path / "model.json")
    findings = verify(tmp_path / "model.json", tmp_path / "rows.csv")
    assert verdict(findings) == "recounted", [f for f in findings if f.verdict == "refuted"]
    document = json.loads((tmp_path / "model.json").read_text())
    document["metrics"]["train"]["correct"] += 1
    (tmp_path / "model.json").write_text(json.dumps(document))
    assert verdict(verify(tmp_path / "model.json", tmp_path / "rows.csv")) == "refuted"


def test_a_converted_file_cannot_claim_to_be_optimal(frame, text, tmp_path):
    raw, reading = raw_of(frame, tmp_path / "rows.csv")
    document = count_rows(convert(text, "lightgbm", classes=["no", "yes"]), raw, reading, target="edible").to_json()
    document["certificate"] |= {"status": "optimal", "bound": document["certificate"]["objective"], "gap": 0.0}
    (tmp_path / "model.json").write_text(json.dumps(document))
    assert verdict(verify(tmp_path / "model.json", tmp_path / "rows.csv")) == "refuted"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.rename(columns={"odor": "odour"}), "lacks 1 of the . columns that the tree asks about: odor. Did you mean 'odour'"),
        (lambda f: f.assign(**{"cap width": "wide"}), "column 'cap width' is numeric, but has 'wide'"),
        (lambda f: f.assign(edible=np.where(f["edible"] == "yes", "ja", "no")), "classes that the tree lacks: ja"),
        (lambda f: f.drop(columns="edible"), "no target 'edible'"),
    ],
)  # fmt: skip
def test_incompatible_table_is_refused(frame, text, tmp_path, change, words):
    raw, reading = raw_of(change(frame), tmp_path / "rows.csv")
    with pytest.raises(DataError, match=words):
        count_rows(convert(text, "lightgbm", classes=["no", "yes"]), raw, reading, target="edible")


def test_categories_only_in_table_are_added_and_go_right(frame, text, tmp_path):
    more = pd.concat([frame, frame.head(5).assign(odor="musty")])
    raw, reading = raw_of(more, tmp_path / "rows.csv")
    model = count_rows(convert(text, "lightgbm", classes=["no", "yes"]), raw, reading, target="edible")
    assert "musty" in model.tree.schema[2].categories
    write(model, tmp_path / "model.json")
    assert verdict(verify(tmp_path / "model.json", tmp_path / "rows.csv")) == "recounted"


def test_our_own_pmml_is_counted_as_it_was(frame, tmp_path):
    raw, reading = raw_of(frame, tmp_path / "rows.csv")
    source = DecisionTreeClassifier(max_depth=3, random_state=0).fit(frame[["cap width", "count"]], frame["edible"])
    tree = from_sklearn(source)
    found = convert(to_pmml(tree, target="edible").encode(), "pmml")
    model = count_rows(found, raw, reading)
    assert model.target == "edible"
    # The rows are the same, so the counts equal those of the fit.
    assert sorted(v.counts for v in model.tree.leaves) == sorted(v.counts for v in tree.leaves)


def test_own_model_file_keeps_tree_and_drops_claims(frame, tmp_path):
    raw, reading = raw_of(frame.dropna(), tmp_path / "rows.csv")
    table, labels, _ = build_as_read(raw, reading, target="edible", ignore=["name"])
    trained = train(TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": 2}))
    content = json.dumps(trained.model.to_json()).encode()
    assert form_of(content) == "octweb"
    model = count_rows(convert(content, "octweb"), raw, reading)
    assert [v.counts for v in model.tree.nodes] == [v.counts for v in trained.tree.nodes]
    assert trained.model.certificate["status"] == "optimal"
    assert (model.method, model.certificate["status"], model.certificate["bound"]) == ("converted", "heuristic", None)
    for broken in (
        content[:-2],
        content.replace(b'"octweb-tree", "format_version": 1', b'"octweb-tree", "format_version": 9'),
    ):
        with pytest.raises(TrainerError):
            convert(broken, "octweb")


def test_files_of_other_forms_are_refused():
    for content in (b"", b"octweb", b"\x80\x04\x95"):
        with pytest.raises(ConversionError, match="neither PMML"):
            form_of(content)
    with pytest.raises(ConversionError, match="not one of"):
        convert(b"", "onnx")


# The tests below search for a better tree.


def columns(seed: int, rows: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (rows, 3)).astype(float)
    return X, ((X[:, 0] > 2) ^ (X[:, 1] > 3) ^ (rng.random(rows) < 0.15)).astype(np.int32)


def most_right(X: np.ndarray, y: np.ndarray, depth: int, leaves: int) -> int:
    """Return the most correct rows of a tree with this depth and number of leaves, over every threshold."""
    best = int(np.bincount(y, minlength=2).max()) if len(y) else 0
    if depth == 0 or leaves < 2 or len(y) < 2:
        return best
    for j in range(X.shape[1]):
        for cut in np.unique(X[:, j])[:-1]:
            left = X[:, j] <= cut
            for own in range(1, leaves):
                best = max(
                    best,
                    most_right(X[left], y[left], depth - 1, own)
                    + most_right(X[~left], y[~left], depth - 1, leaves - own),
                )
    return best


def test_the_search_agrees_with_trying_every_tree():
    verdicts = set()
    for seed in range(12):
        X, y = columns(seed)
        source = DecisionTreeClassifier(max_depth=2, max_leaf_nodes=2 + seed % 3, random_state=seed).fit(X, y)
        tree = from_sklearn(source)
        table = numeric_table(X)
        labels = Labels(name="y", classes=("0", "1"), codes=y)
        found = rival(tree, table, labels)
        truth = most_right(X, y, tree.depth, tree.n_leaves)
        assert found.correct == int((source.predict(X) == y).sum())
        assert found.correct <= found.best <= truth <= found.bound
        assert (found.verdict == "no better tree") <= (truth == found.correct)
        if found.verdict == "not optimal":
            assert found.tree.n_leaves <= tree.n_leaves
            assert found.tree.depth <= tree.depth
            assert int((found.tree.predict(X) == y).sum()) == found.best > found.correct
            assert f"{found.best - found.correct} fewer mistake" in found.words
        verdicts.add(found.verdict)
    assert {"not optimal", "no better tree"} <= verdicts


def test_too_deep_tree_stays_open_unless_better_one_exists():
    X, y = columns(1)
    good = from_sklearn(DecisionTreeClassifier(max_depth=6, random_state=0).fit(X, y))
    table = numeric_table(X)
    labels = Labels(name="y", classes=("0", "1"), codes=y)
    found = rival(good, table, labels)
    assert found.verdict == "open"
    assert "goes to depth 4" in found.words
    draft = DraftLeaf(label=0)
    for _ in range(6):
        draft = DraftBranch(split=Threshold(feature=2, threshold=-1.0), left=DraftLeaf(label=1), right=draft)
    bad = grow(draft, X, y, schema=table.schema, classes=("0", "1"))
    assert rival(bad, table, labels).verdict == "not optimal"


def test_leaf_is_right_for_its_majority():
    X, y = columns(2)
    table = numeric_table(X)
    labels = Labels(name="y", classes=("0", "1"), codes=y)
    big = int(np.bincount(y).argmax())
    for label, verdict_ in ((big, "no better tree"), (1 - big, "not optimal")):
        tree = grow(DraftLeaf(label=label), X, y, schema=table.schema, classes=("0", "1"))
        assert rival(tree, table, labels).verdict == verdict_


def test_a_search_without_time_claims_nothing():
    X, y = columns(3)
    tree = from_sklearn(DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y))
    found = rival(tree, numeric_table(X), Labels(name="y", classes=("0", "1"), codes=y), time_limit=0.0)
    assert found.verdict == "open"
    assert found.bound is None


def test_columns_follow_source_and_counts_need_rows(frame, tmp_path):
    raw, reading = raw_of(frame, tmp_path / "rows.csv")
    source = DecisionTreeClassifier(max_depth=1, random_state=0).fit(frame[["count", "cap width"]], frame["edible"])
    tree, table, labels = fitted_to(from_sklearn(source), raw, reading, "edible")
    assert table.names == ("count", "cap width")
    said = tree.predict(table.matrix())
    assert [tree.classes[k] for k in said] == source.predict(frame[["count", "cap width"]]).tolist()
    assert labels.classes == ("no", "yes")
    model = count_rows(ConvertedTree(tree=from_sklearn(source), target="edible", form="scikit-learn"), raw, reading)
    assert model.method == "converted"
