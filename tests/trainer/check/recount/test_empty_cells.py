"""Model files with empty cells: true ones are accepted, and each false claim is refuted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.trainer.check.empty_cells import EmptyCellFiles, files_of, trained_files
from trainer.check.proof.space.questions import lower_median
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, MissingPolicy, Table

Document = dict[str, Any]
SEARCHED = ("exact", "exact-numeric", "bendoct-accelerated", "oct", "binoct", "flowoct", "bendoct")


@pytest.mark.slow
@pytest.mark.parametrize("method", SEARCHED)
def test_proof_of_table_with_empty_cells_is_accepted(method, tmp_path, count):
    rng = np.random.default_rng(431)
    quick = method in ("exact", "exact-numeric")
    for k in range(count if quick else min(count, 3)):
        depth = int(rng.integers(1, 4)) if quick else 2
        penalty = float(rng.choice([0.0, 0.01, 0.05]))
        files = trained_files(
            tmp_path, rng, method, weighted=bool(k % 2), binarise="all-thresholds", depth=depth, leaf_penalty=penalty
        )
        found, lines = files.check()
        assert found == "proved", lines


@pytest.mark.parametrize("binarise", ["quantile-thresholds", "quantile-buckets", "all-thresholds"])
def test_bound_without_proof_file_is_searched_again(binarise, tmp_path, count):
    rng = np.random.default_rng(432)
    for _ in range(count):
        files = trained_files(tmp_path, rng, "exact", weighted=True, binarise=binarise, bins=3, depth=2, folds=2)
        files.proof.unlink()
        found, lines = EmptyCellFiles(files.model, None, files.rows).check()
        assert found == "proved", lines


@pytest.mark.parametrize("method", ["cart", "oc1"])
def test_grown_tree_with_empty_cells_is_recounted(method, tmp_path, count):
    rng = np.random.default_rng(433)
    for _ in range(count):
        assert trained_files(tmp_path, rng, method, depth=3).check()[0] == "recounted"


def test_splits_of_two_columns_are_proved_for_both_sides(tmp_path, count):
    rng = np.random.default_rng(434)
    for _ in range(count):
        found, lines = trained_files(tmp_path, rng, "bivariate", depth=2).check()
        assert found in ("proved", "recounted"), lines
        assert all(line.verdict == "proved" for line in lines if line.claim == "splits"), lines


@pytest.mark.parametrize("method", ["cut-h", "oct-h", "s-oct", "odt"])
def test_unseen_rule_of_refused_cells_is_kept(method, tmp_path):
    files = trained_files(tmp_path, np.random.default_rng(436), method, depth=1, bins=3, unseen_missing="refuse")
    assert files.check()[0] == "proved", files.check()[1]


def column(name: str, values: list[float | None]) -> Column:
    own = np.array([np.nan if v is None else v for v in values])
    return Column(schema=ColumnSchema(name=name, kind=ColumnKind.NUMERIC, missing=MissingPolicy.LEARN), cells=own)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> EmptyCellFiles:
    """Provide a tree that splits on `a`, with its empty cells on the left, and on `b`, which has none in training."""
    a = [1, 2, 3, 4, 5, 6, None, None, 7, 8, 9, 10]
    b = [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 1]
    y = [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 1, 1]
    table = Table(columns=(column("a", a), column("b", b)), row_numbers=np.arange(1, 13))
    labels = Labels(name="y", classes=("p", "q", "r"), codes=np.array(y, np.int32))
    return files_of(tmp_path_factory.mktemp("files"), table, labels, "exact", binarise="all-thresholds", depth=2)


def split_of(document: Document, name: str) -> dict[str, Any]:
    """Return the split on a column."""
    found: dict[str, Any] = next(v["split"] for v in document["nodes"] if v.get("split", {}).get("feature") == name)
    return found


def test_splits_say_where_empty_cells_go(files):
    document = files.document
    assert split_of(document, "a")["missing"] == "left"
    assert split_of(document, "b") | {"threshold": 0} == {
        "kind": "threshold",
        "feature": "b",
        "threshold": 0,
        "missing": "left",
        "missing_seen": False,
    }
    assert files.check()[0] == "proved"


def _swap(document: Document) -> None:
    split_of(document, "a")["missing"] = "right"


def _take_seen(document: Document) -> None:
    split_of(document, "a")["missing_seen"] = False


def _remove(document: Document) -> None:
    del split_of(document, "a")["missing"]


def _refuse(document: Document) -> None:
    split_of(document, "a")["missing"] = "refuse"


def _remove_unseen(document: Document) -> None:
    del split_of(document, "b")["missing"]


def _claim_seen(document: Document) -> None:
    del split_of(document, "b")["missing_seen"]


def _take_lighter_side(document: Document) -> None:
    split_of(document, "b")["missing"] = "right"


def _ask_emptiness(document: Document) -> None:
    split = split_of(document, "a")
    split.clear()
    split.update(kind="missing", feature="a")


def _take_other_word(document: Document) -> None:
    split_of(document, "a")["missing"] = "fill"


def _drop(document: Document) -> None:
    document["columns"][0]["missing"] = "drop"


def _state_fill(document: Document) -> None:
    document["columns"][0]["fill"] = 5.5


def _forget_empty_cells(document: Document) -> None:
    scope = document["certificate"]["scope"]
    document["certificate"]["scope"] = scope.replace(", empty cells of 1 column on either side or asked about", "")
    assert document["certificate"]["scope"] != scope


LIES: dict[Callable[[Document], None], str] = {
    _swap: "counts",
    _take_seen: "empty cells",
    _remove: "counts",
    _refuse: "counts",
    _remove_unseen: "empty cells",
    _claim_seen: "empty cells",
    _take_lighter_side: "empty cells",
    _ask_emptiness: "counts",
    _take_other_word: "structure",
    _drop: "rows",
    _state_fill: "columns",
    _forget_empty_cells: "scope",
}


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__.strip("_"))
def test_lie_about_empty_cells_is_refuted(files, lie):
    document = files.document
    lie(document)
    found, lines = files.check(document)
    assert found == "refuted"
    assert LIES[lie] in {line.claim for line in lines if line.verdict == "refuted"}


def test_refused_training_rows_are_a_lie_if_counts_are_kept(files):
    """Rows with an empty cell go left by the counts, and the split says that they get no answer."""
    document = files.document
    document["nodes"][0]["split"] |= {"missing": "refuse"}
    left = document["nodes"][document["nodes"][0]["left"]]
    right = document["nodes"][document["nodes"][0]["right"]]
    left["counts"][0] -= 2
    right["counts"][0] += 2
    found, lines = files.check(document)
    assert found == "refuted"
    assert any(line.claim == "empty cells" and "no side" in line.detail for line in lines)


def test_bound_below_better_question_of_other_side_is_refuted(tmp_path):
    """The tree sends empty cells to their worse side, and the file calls it optimal."""
    a = [1, 2, 3, 4, None, None, None]
    table = Table(columns=(column("a", a),), row_numbers=np.arange(1, 8))
    labels = Labels(name="y", classes=("p", "q"), codes=np.array([0, 0, 1, 1, 1, 1, 0], np.int32))
    files = files_of(tmp_path, table, labels, "exact", binarise="all-thresholds", depth=1)
    document = files.document
    document["nodes"][0]["split"]["missing"] = "left"
    document["nodes"][1]["counts"] = [3, 2]
    document["nodes"][2]["counts"] = [0, 2]
    document["certificate"] |= {"correct": 5, "objective": 5 / 7, "bound": 5 / 7, "gap": 0.0}
    document["metrics"]["train"] |= {"correct": 5, "accuracy": 5 / 7, "confusion": [[3, 0], [2, 2]]}
    _, lines = EmptyCellFiles(files.model, None, files.rows).check(document)
    assert "bound" in {line.claim for line in lines if line.verdict == "refuted"}


@pytest.mark.parametrize(
    ("values", "weights", "wanted"),
    [
        ([3, 1, 2], [1, 1, 1], 2.0),
        ([1, 2, 3, 4], [1, 1, 1, 1], 2.0),
        ([1, 2, 3], [1, 1, 5], 3.0),
        ([1, np.nan, 9], [1, 100, 2], 9.0),
        ([np.nan], [1], None),
    ],
)
def test_fill_is_weighted_lower_median(values, weights, wanted):
    assert lower_median(np.array(values, float), np.array(weights)) == wanted


def test_fill_of_filled_sum_is_counted_again(files):
    """Half of the weight of the values of `a` is at or below 5."""
    document = files.document
    document["columns"][0]["fill"] = 5
    assert files.check(document)[0] == "proved"


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> EmptyCellFiles:
    """Provide a model with a sum of two columns; only the first one has an empty cell."""
    a = [1, 2, 3, None, 5, 6, 7, 8]
    b = [1, 3, 2, 4, 8, 6, 5, 7]
    table = Table(columns=(column("a", a), column("b", b)), row_numbers=np.arange(1, 9))
    labels = Labels(name="y", classes=("p", "q"), codes=np.array([0, 0, 0, 0, 1, 1, 1, 1], np.int32))
    files = files_of(tmp_path_factory.mktemp("filled"), table, labels, "s-oct", depth=1)
    assert files.document["nodes"][0]["split"]["missing"] == "fill"
    return files


def _change_fill(document: Document) -> None:
    document["columns"][0]["fill"] += 1


def _change_fill_seen(document: Document) -> None:
    document["columns"][0]["fill_seen"] = False


def _take_fill(document: Document) -> None:
    del document["columns"][0]["fill"]


def _deny_seen(document: Document) -> None:
    document["nodes"][0]["split"]["missing_seen"] = False


def _send_left(document: Document) -> None:
    document["nodes"][0]["split"]["missing"] = "right"


def _forget_fill(document: Document) -> None:
    scope = document["certificate"]["scope"]
    document["certificate"]["scope"] = scope.replace(
        ", empty cells filled with the training median, with an indicator", ""
    )


def _unknown_rule(document: Document) -> None:
    document["parameters"]["unseen_missing"] = "sometimes"


FILL_LIES: dict[Callable[[Document], None], str] = {
    _change_fill: "columns",
    _change_fill_seen: "columns",
    _take_fill: "structure",
    _deny_seen: "empty cells",
    _send_left: "counts",
    _forget_fill: "scope",
    _unknown_rule: "method",
}


@pytest.mark.parametrize("lie", FILL_LIES, ids=lambda lie: lie.__name__.strip("_"))
def test_lie_about_filled_cells_is_refuted(filled, lie):
    assert filled.check()[0] == "proved", filled.check()[1]
    document = filled.document
    lie(document)
    found, lines = filled.check(document)
    assert found == "refuted"
    assert FILL_LIES[lie] in {line.claim for line in lines if line.verdict == "refuted"}, lines
