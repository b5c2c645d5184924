"""Proofs with empty cells: both checkers accept them, and refuse a changed side, split or version."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.trainer.check.empty_cells import EmptyCellFiles, csv_text, trained_files
from tests.trainer.check.proof.changes import page
from tests.trainer.oracles.missing import random_table
from trainer.check.proof.proof import proved_bounds
from trainer.check.proof.space.space import has_empty_cell
from trainer.check.proof.subject import BadProof
from trainer.check.recount.table.rows import load
from trainer.data.reader import load as read_table
from trainer.errors import ParameterError
from trainer.table import MissingPolicy
from trainer.training.run import TrainRequest, save, train
from trainer.workbench.requests import WorkbenchSession

Lines = list[dict[str, Any]]
SPACES: list[tuple[str, dict[str, Any]]] = [
    ("exact", {"binarise": "all-thresholds", "depth": 3}),
    ("exact", {"binarise": "quantile-thresholds", "bins": 3, "depth": 3, "leaf_penalty": 0.02}),
    ("exact", {"binarise": "quantile-buckets", "bins": 3, "depth": 4}),
    ("exact", {"binarise": "all-thresholds", "depth": 3, "max_leaves": 4, "max_columns": 1}),
    ("exact", {"binarise": "quantile-thresholds", "depth": 3, "min_leaf": 2, "class_weight": "none"}),
    ("exact-numeric", {"depth": 2}),
    ("exact-numeric", {"depth": 3, "leaf_penalty": 0.015}),
    ("bendoct", {"binarise": "all-thresholds", "depth": 2, "monotone": "x0 up"}),
    ("oct", {"binarise": "quantile-thresholds", "bins": 2, "depth": 2}),
    ("odt", {"bins": 4, "depth": 2}),
    ("odt", {"bins": 3, "depth": 3, "select": "cart"}),
    ("odt", {"bins": 3, "topology": "depth-2.5"}),
    ("cut-h", {"depth": 1}),
    ("s-oct", {"depth": 1}),
    ("oct-h", {"depth": 1}),
]


def read_lines(files: EmptyCellFiles) -> Lines:
    assert files.proof is not None
    return [json.loads(line) for line in gzip.decompress(files.proof.read_bytes()).splitlines()]


def shown_cost(files: EmptyCellFiles, lines: Lines) -> Any:
    """Return the lower bound for each tree that the proof checker derives."""
    changed = files.model.with_name("changed.proof.jsonl")
    changed.write_text("".join(json.dumps(line) + "\n" for line in lines))
    document = files.document
    return proved_bounds(document, load(files.rows, document).training, changed).cost


@pytest.mark.slow
@pytest.mark.parametrize("space", range(len(SPACES)))
def test_both_checkers_accept_proofs_of_empty_cells(space, tmp_path, count):
    method, parameters = SPACES[space]
    rng = np.random.default_rng(440 + space)
    cases = []
    for k in range(min(count, 8) if method.startswith(("exact", "odt")) else 2):
        files = trained_files(tmp_path, rng, method, weighted=bool(k % 2), **parameters)
        assert files.check()[0] == "proved", files.check()[1]
        lines = read_lines(files)
        empty = has_empty_cell(load(files.rows, files.document).training)
        assert (lines[0]["version"] == 8) == ("like" in lines[0]) == empty
        cases.append((files.model.read_text(), "\n".join(map(json.dumps, lines)), files.rows.read_text()))
    assert all(page(cases))


def _without_version(lines: Lines) -> None:
    lines[0]["version"] = lines[0].pop("like")


def _like_planes(lines: Lines) -> None:
    lines[0]["like"] = 3


def _without_like(lines: Lines) -> None:
    del lines[0]["like"]


@pytest.mark.parametrize("change", [_without_version, _like_planes, _without_like])
def test_proof_of_empty_cells_needs_version_8(change: Callable[[Lines], None], tmp_path):
    files = trained_files(tmp_path, np.random.default_rng(3), "exact", binarise="all-thresholds", depth=3)
    lines = read_lines(files)
    change(lines)
    with pytest.raises(BadProof, match=r"not a proof|needs a proof of version 8"):
        shown_cost(files, lines)
    assert page([(files.model.read_text(), "\n".join(map(json.dumps, lines)), files.rows.read_text())]) == [False]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exact", "exact-numeric"])
def test_proof_with_other_side_or_threshold_is_rejected(method, tmp_path, count):
    """A split of a step is replaced by its twin with the other side, or by another threshold.

    A changed bound that still holds is accepted.
    """
    rng = np.random.default_rng(450)
    refused = 0
    tried = 0
    for _ in range(max(count, 12)):
        files = trained_files(tmp_path, rng, method, binarise="all-thresholds", depth=4)
        lines = read_lines(files)
        whole = shown_cost(files, lines)
        for k in [k for k, line in enumerate(lines) if line.get("path")][:6]:
            changed = json.loads(json.dumps(lines))
            changed[k]["path"][-1] ^= int(rng.choice([2, 4]))
            changed[k]["bound"] += 1
            tried += 1
            try:
                assert shown_cost(files, changed) <= whole
            except BadProof:
                refused += 1
    assert tried
    assert refused > tried / 2


def test_proof_for_swapped_side_in_rows_is_rejected(tmp_path):
    """The fingerprint covers the empty cells, so a proof for rows with a value in their place is one for another table."""
    files = trained_files(tmp_path, np.random.default_rng(5), "exact", binarise="all-thresholds", depth=2)
    lines = files.rows.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(","))
    files.rows.write_text("\n".join([*lines[:at], "0" + lines[at], *lines[at + 1 :]]) + "\n")
    assert files.check()[0] == "refuted"


WISHES = (
    ["ask root x0 <= 0.75"],
    ["ask root x0 is empty", "forbid n x0"],
    ["ask root x0 <= 0.75 empty no"],
    ["ask y x0 <= 0.25 empty yes", "leaf n a"],
    ["ask root x0", "avoid y x0"],
)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exact", "exact-numeric", "odt"])
@pytest.mark.parametrize("wishes", WISHES, ids=lambda wishes: wishes[0])
def test_both_checkers_accept_wishes_about_empty_cells(method, wishes, tmp_path, count):
    rng = np.random.default_rng(460)
    cases = []
    while len(cases) < min(count, 4):
        table, labels = random_table(rng)
        parameters = {"depth": 2} | ({"binarise": "all-thresholds"} if method == "exact" else {})
        request = TrainRequest(table=table, labels=labels, method=method, parameters=parameters)
        session = WorkbenchSession(request)
        monitor = session.monitor()
        try:
            completion = session.complete(wishes, monitor)
        except ParameterError:  # the constraint names a column without empty cells
            continue
        if not completion.found:
            continue
        proof = tmp_path / "model.proof.jsonl.gz"
        result = session.result(completion, monitor, proof)
        save(result.model, tmp_path / "model.json")
        (tmp_path / "rows.csv").write_text(csv_text(table, labels))
        files = EmptyCellFiles(tmp_path / "model.json", proof, tmp_path / "rows.csv")
        verdict, lines = files.check()
        assert verdict == "proved", [line for line in lines if line.verdict in ("refuted", "cannot be judged")]
        cases.append((files.model.read_text(), "\n".join(map(json.dumps, read_lines(files))), files.rows.read_text()))
    assert all(page(cases))


@pytest.mark.parametrize("method", ["exact", "exact-numeric", "odt"])
def test_both_checkers_read_empty_cells_of_categories(method, tmp_path):
    """With the policy 'learn' an empty cell of a categorical column is the category '(missing)'."""
    path = tmp_path / "rows.csv"
    cells = [("a", 1), ("", 2), ("b", ""), ("", 4), ("a", 5), ("b", 6), ("a", ""), ("", 8), ("b", 9), ("a", 2)]
    path.write_text("c,x,y\n" + "".join(f"{c},{x},{'no' if c else 'yes'}\n" for c, x in cells))
    table, labels, _ = read_table(path, target="y")
    assert {column.missing for column in table.schema} == {MissingPolicy.LEARN}
    proof = tmp_path / "model.proof.jsonl.gz"
    request = TrainRequest(table=table, labels=labels, method=method, parameters={"depth": 2}, proof=proof)
    save(train(request).model, tmp_path / "model.json")
    files = EmptyCellFiles(tmp_path / "model.json", proof, path)
    assert files.check()[0] == "proved", files.check()[1]
    text = "\n".join(map(json.dumps, read_lines(files)))
    assert page([(files.model.read_text(), text, path.read_text())]) == [True]
