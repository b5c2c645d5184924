"""`manage.py pareto`: accuracy by branchings and coefficients, as text, JSON and in the model file."""

from __future__ import annotations

import json
import os
import signal
import threading
from io import StringIO

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from trainer.cli import pareto
from trainer.training.run import train
from trainer.tree.file import read_model
from trainer.tree.nodes import tree_from_json

ARGUMENTS = ("--target=y", "--depth=2", "--set=first_trees=cart", "--set=search_seconds=1", "--time-limit=20")


@pytest.fixture
def rows(tmp_path):
    """Provide rows whose class is the exclusive or of two signs.

    Two parallel lines separate two opposite corners from the others.
    """
    path = tmp_path / "rows.csv"
    grid = [(a, b) for a in (-2, -1, 1, 2) for b in (-2, -1, 1, 2)]
    path.write_text("a,b,y\n" + "\n".join(f"{a},{b},{'yes' if a * b > 0 else 'no'}" for a, b in grid) + "\n")
    return path


def run(*arguments):
    out = StringIO()
    call_command("pareto", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_every_number_of_branchings_is_proved_and_keeps_its_tree(rows, tmp_path):
    model = tmp_path / "model.json"
    record = json.loads(run(str(rows), *ARGUMENTS, "--json", f"--output={model}").splitlines()[-1])
    assert record["status"] == "optimal"
    branchings = record["branchings"]
    coefficients = record["coefficients"]
    assert [p["branchings"] for p in branchings] == sorted({p["branchings"] for p in branchings})
    # one line separates one corner from the rest, a second line the other corner
    assert {p["branchings"]: p["correct"] for p in branchings} == {0: 8, 1: 12, 2: 16}
    assert all(p["proved"] and p["bound"] == p["correct"] for p in branchings)
    whole = read_model(model).tree
    data = np.array([[float(c) for c in line.split(",")[:2]] for line in rows.read_text().splitlines()[1:]])
    classes = [line.split(",")[2] for line in rows.read_text().splitlines()[1:]]
    for p in (*branchings, *coefficients):
        tree = tree_from_json(p["tree"], schema=whole.schema, classes=whole.classes)
        found = [whole.classes[k] for k in tree.predict(data)]
        assert sum(a == b for a, b in zip(found, classes, strict=True)) == p["correct"]
    assert [p["coefficients"] for p in coefficients] == sorted({p["coefficients"] for p in coefficients})
    assert coefficients[-1]["correct"] == 16


def test_the_text_has_a_line_for_each_point(rows):
    text = run(str(rows), *ARGUMENTS, "--method=cutw-h")
    assert text.count(" yes\n") >= 3
    assert "branchings" in text
    assert "coefficients" in text


def test_a_bad_value_is_refused(rows):
    with pytest.raises(CommandError, match="depth"):
        run(str(rows), "--target=y", "--depth=77")


def test_missing_folder_is_refused_before_the_search(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(pareto, "train", lambda *_, **__: pytest.fail("a search whose model could not be written"))
    with pytest.raises(CommandError, match="does not exist or cannot be written to") as refused:
        run(str(rows), *ARGUMENTS, f"--output={tmp_path / 'missing' / 'model.json'}")
    assert refused.value.returncode == 2


def test_omitted_columns_are_noted(rows):
    rows.write_text(rows.read_text() + ",1,yes\n")
    notes = StringIO()
    call_command("pareto", str(rows), *ARGUMENTS, "--missing=drop", stdout=StringIO(), stderr=notes)
    assert "note: " in notes.getvalue()


def test_signal_keeps_the_incumbent(tmp_path, monkeypatch):
    """After SIGINT during the search, the partial frontier is printed and the model written."""
    r = np.random.default_rng(4)
    path = tmp_path / "rows.csv"
    model = tmp_path / "model.json"
    lines = [f"{a:.3f},{b:.3f},{k}" for a, b, k in zip(*r.normal(size=(2, 300)), r.integers(0, 2, 300), strict=True)]
    path.write_text("a,b,y\n" + "\n".join(lines) + "\n")
    handlers = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]

    def interrupted(request, on_start):
        def started(monitor):
            on_start(monitor)
            threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()

        return train(request, on_start=started)

    monkeypatch.setattr(pareto, "train", interrupted)
    try:
        text = run(str(path), "--target=y", "--depth=3", "--time-limit=120", f"--output={model}")
    finally:
        for number, handler in handlers:
            signal.signal(number, handler)
    assert "ended early (cancelled)" in text
    assert read_model(model).tree.n_leaves >= 1


def test_costs_give_the_least_cost_for_each_size(rows, tmp_path):
    costs = tmp_path / "costs.json"
    costs.write_text(json.dumps({"unit": "EUR", "costs": {"yes": {"no": 3}}}))
    record = json.loads(run(str(rows), *ARGUMENTS, "--json", f"--costs={costs}").splitlines()[-1])
    # always "yes" costs the 8 rows of "no"; a line separates four rows of one corner, and a second line the other
    # corner
    assert {p["branchings"]: p["cost"] for p in record["branchings"]} == {0: 8, 1: 4, 2: 0}
    assert all(p["proved"] and p["least"] == p["cost"] for p in record["branchings"])
    assert record["best_constant"] == {"answer": "yes", "cost": 8}
    text = run(str(rows), *ARGUMENTS, "--cost=yes>no=3", "--cost-unit=EUR")
    assert "cost EUR" in text
    assert "Always answering yes costs 8 EUR." in text
    with pytest.raises(CommandError, match="cannot hold a frontier of costs"):
        run(str(rows), *ARGUMENTS, "--cost=yes>no=3", f"--output={tmp_path / 'model.json'}")
