"""Proofs from counts hold, prove no more than the optimum, and both checkers agree on them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trainer.check.proof.changes import changed_proofs, page, page_verdicts
from tests.trainer.counts.proof_cases import lines_of, page_files
from tests.trainer.counts.tables import counted, random_rows, write_rows
from trainer.check.bundle import bundle
from trainer.check.recount import verdict, verify
from trainer.cli.dispatch import main
from trainer.counts.folder import Counts, suppress_small, write_counts
from trainer.counts.train import train_counts
from trainer.tree.file import write

SETTINGS: list[dict[str, Any]] = [
    {},
    {"min_leaf": 3},
    {"max_leaves": 3, "forbidden": "c"},
    {"costs": "c0>c1=5; c1>c0=2.5"},
    {"max_leaves": 2, "leaf_penalty": 0.03},
    {"leaf_penalty": 0.01},
    {"recall": "c0: 0.9", "leaf_penalty": 0.01},
    {"forbidden_pairs": "a+b; b+c"},
    {"recall": "c1: 0.8", "max_leaves": 3, "forbidden_pairs": "c+colour"},
]


def proved(rng: np.random.Generator, folder: Path, settings: dict[str, Any], depth: int) -> Counts:
    """Train on random counts in `folder`/counts; write the model and its proof beside it."""
    path = write_rows(random_rows(rng, classes=2 + depth % 2), folder / "rows.csv")
    counts = counted(path, folder / "counts", depth=depth)
    write(train_counts(counts, settings, proof=folder / "proof.jsonl.gz").model, folder / "model.json")
    return counts


def judged(folder: Path, lines: list[dict[str, Any]] | None = None) -> str:
    """Return the verdict on the model of a folder with its own proof, or with these lines."""
    if lines is None:
        return verdict(verify(folder / "model.json", folder / "counts", folder / "proof.jsonl.gz"))
    (folder / "changed.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return verdict(verify(folder / "model.json", folder / "counts", folder / "changed.jsonl"))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_proof_holds_and_no_higher_goal_does(tmp_path, count, depth):
    for seed in range(count):
        folder = tmp_path / str(seed)
        proved(np.random.default_rng([seed, depth]), folder, SETTINGS[seed % len(SETTINGS)], depth)
        assert judged(folder) == "proved", seed
        header, step = lines_of(folder)
        raised = [header | {"goal": header["goal"] + 1}, step | {"bound": step["bound"] + 1}]
        assert judged(folder, raised) == "refuted", seed


@pytest.mark.slow
def test_both_checkers_agree_on_changed_proofs_of_counts(tmp_path, count):
    cases = []
    expected = []
    for seed in range(4 * count):
        folder = tmp_path / str(seed)
        settings = SETTINGS[seed % len(SETTINGS)]
        if "costs" in settings:  # the page does not judge costs
            continue
        proved(np.random.default_rng(seed), folder, settings, 1 + seed % 3)
        lines = lines_of(folder)
        for changed in [lines, *changed_proofs(lines)]:
            cases.append(page_files(folder, changed))
            expected.append(judged(folder, changed) == "proved")
    assert page(cases) == expected
    assert sum(expected) > count


def test_the_page_refuses_other_counts_and_missing_numbers(tmp_path):
    proved(np.random.default_rng(3), tmp_path, {}, 2)
    proved(np.random.default_rng(4), tmp_path / "other", {}, 2)
    model, proof, record, numbers = page_files(tmp_path, lines_of(tmp_path))
    _, _, other_record, other_numbers = page_files(tmp_path / "other", lines_of(tmp_path / "other"))
    cases: list[Any] = [
        (model, proof, record, numbers),
        (model, proof, other_record, other_numbers),
        (model, proof, record.replace('"rows": ', '"rows": 1', 1), numbers),
        (model, proof, record),
    ]
    said = page_verdicts(cases)
    assert [[holds for holds, _ in one] for one in said] == [[True] * 3, [False], [False], [None]]
    assert "choose their two files" in said[3][0][1]


def test_steps_beyond_the_counts_are_refused(tmp_path):
    proved(np.random.default_rng(5), tmp_path, {}, 2)
    header, step = lines_of(tmp_path)
    assert judged(tmp_path, [header, step | {"by": "split"}]) == "proved"
    for change in ({"height": 3}, {"by": "split", "path": [0]}, {"by": "similar", "of": 1}, {"path": [0, 2, 4]}):
        assert judged(tmp_path, [header, step | change]) == "refuted", change
    assert judged(tmp_path, [header | {"version": 2}, step]) == "refuted"


def test_suppressed_counts_state_why_there_is_no_proof(tmp_path):
    path = write_rows(random_rows(np.random.default_rng(2)), tmp_path / "rows.csv")
    write_counts(suppress_small(counted(path, tmp_path / "whole"), 3), tmp_path / "counts")
    command = ["train", str(tmp_path / "counts"), "--method", "exact", "--output", str(tmp_path / "model.json")]
    assert main("octweb", [*command, "--proof", str(tmp_path / "proof.jsonl.gz")]) == 0
    assert not (tmp_path / "proof.jsonl.gz").exists()
    record = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))["certificate"]["evidence"][1]
    assert record["reason"] == "There are no proof steps for counts whose small numbers are secret."
    assert verdict(verify(tmp_path / "model.json", tmp_path / "counts")) == "proved"


def test_the_single_file_checks_a_proof_from_counts(tmp_path):
    proved(np.random.default_rng(6), tmp_path, {"leaf_penalty": 0.01}, 3)
    program = tmp_path / "check_octweb.py"
    program.write_text(bundle(), encoding="utf-8")
    files = [str(tmp_path / name) for name in ("model.json", "proof.jsonl.gz", "counts")]
    process = subprocess.run([sys.executable, str(program), *files], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "proved           bound: one step holds" in process.stdout
