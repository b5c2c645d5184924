"""`manage.py evaluate`: from files to tables, CSV, HTML and JSON, and every refusal."""

from __future__ import annotations

import csv
import json
import re

import pytest
from django.core.management import CommandError, call_command

from tests.octweb.runs.conftest import CSV


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    paths[0].write_text(CSV)
    paths[1].write_text("\n".join([*CSV.splitlines()[:1], *CSV.splitlines()[21:]]) + "\n")
    return [str(p) for p in paths]


def evaluate(capsys, *arguments: str) -> dict:
    call_command("evaluate", *arguments, "--folds=3", "--json")
    return json.loads(capsys.readouterr().out.strip().splitlines()[-1])


def test_one_data_set_and_one_method(capsys, files):
    evaluation = evaluate(capsys, files[0], "--target=class", "--method=cart", "--depth=3")
    assert 0.5 < evaluation["accuracy"] <= 1
    assert len(evaluation["accuracies"]) == 3
    assert evaluation["results"][0]["leaves"] >= 2


def test_ignored_column_is_left_out_of_every_data_set(capsys, tmp_path):
    """Column `leak` is the class, so the accuracy falls as soon as no tree may ask it."""
    rows = "".join(f"{(7 * i * i + i) % 11},{i % 2},{i % 2}\n" for i in range(60))
    table = tmp_path / "leak.csv"
    table.write_text(f"a,leak,class\n{rows}")
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps([{"name": "leak", "file": "leak.csv", "ignore": ["leak"]}]))
    options = ("--target=class", "--method=cart", "--depth=1")
    assert evaluate(capsys, str(table), *options)["accuracy"] == 1
    assert evaluate(capsys, str(table), *options, "--ignore=leak")["accuracy"] < 1
    assert evaluate(capsys, "leak", *options, f"--manifest={manifest}")["accuracy"] < 1
    with pytest.raises(CommandError, match="There is no column 'nope' in the file"):
        evaluate(capsys, str(table), *options, "--ignore=nope")


@pytest.mark.slow
def test_many_methods_write_tables_and_a_page(capsys, files, tmp_path):
    out = tmp_path / "out"
    options = ["--method=bivariate", "--method=cart", "--method=exact", "--pruned", "--depth=2", f"--output={out}"]
    evaluation = evaluate(capsys, *files, *options)
    assert {r["group"] for r in evaluation["results"]} == {"unpruned", "pruned"}
    assert [r["variant"] for r in evaluation["results"] if r["group"] == "pruned"][:2] == [
        "Bivariate tree, pruned",
        "CART, pruned",
    ]
    assert len(evaluation["comparisons"]["unpruned"]["accuracy"]["ranks"]) == 3
    with (out / "results.csv").open() as stream:
        assert len(list(csv.DictReader(stream))) == 10
    assert "| two |" in (out / "results.md").read_text()
    page = (out / "results.html").read_text()
    assert "<table>" in page
    assert "Plotly" in page
    assert "http" not in page.split("<script>", 1)[0].replace("http://www.w3.org", "")  # nothing is fetched


def test_state_file_resumes_the_search(capsys, files, tmp_path):
    state = tmp_path / "state.jsonl"
    evaluate(capsys, files[0], "--method=cart", "--depth=2", f"--state={state}")
    before = state.read_text()
    evaluate(capsys, files[0], "--method=cart", "--depth=2", f"--state={state}")
    assert state.read_text() == before
    evaluate(capsys, files[0], "--method=cart", "--method=exact", "--depth=2", f"--state={state}")
    assert len(state.read_text().splitlines()) == 6


def test_a_parameter_of_one_method_only(capsys, files):
    options = ["--method=cart", "--method=exact", "--set=cart.depth=1", "--set=exact.depth=2", "--set=min_leaf=3"]
    evaluation = evaluate(capsys, files[0], *options)
    assert evaluation["results"][0]["leaves"] <= 2 < evaluation["results"][1]["leaves"]


def test_a_manifest_names_the_data_sets(capsys, files, tmp_path):
    entry = {
        "name": "mine",
        "file": "one.csv",
        "categorical_features": ["colour"],
        "numeric_features": ["width", "height"],
    }
    (tmp_path / "manifest.json").write_text(json.dumps([entry]))
    evaluation = evaluate(capsys, "mine", f"--manifest={tmp_path / 'manifest.json'}", "--method=cart")
    assert evaluation["results"][0]["dataset"] == "mine"
    with pytest.raises(CommandError, match="It has: mine"):
        evaluate(capsys, "yours", f"--manifest={tmp_path / 'manifest.json'}", "--method=cart")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--method=cart", "--set=nonsense=1"], 2, "the parameter 'nonsense'"),
        (["--method=cart", "--set=exact.bins=1"], 2, "the parameter 'exact.bins'"),
        (["--method=cart", "--depth=99"], 2, "depth"),
        (["--method=cart", "--jobs=0"], 2, "jobs"),
        (["--method=cart", "--target=nowhere"], 1, "nowhere"),
        (["--method=cart", "--folds=500"], 2, "from 2 to 50"),
    ],
)
def test_invalid_requests_are_refused(capsys, files, arguments, status, words):
    with pytest.raises(CommandError, match=words) as refusal:
        call_command("evaluate", files[0], *arguments)
    assert refusal.value.returncode == status


def test_dask_is_asked_for_where_it_is_missing(capsys, files, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    with pytest.raises(CommandError, match="not installed"):
        call_command("evaluate", files[0], "--method=cart", "--dask=tcp://127.0.0.1:1")


def test_cluster_returns_same_records_as_one_process(capsys, files):
    """A scheduler with two workers gives the same trees in every fold and variant."""
    distributed = pytest.importorskip("distributed", reason="requirements-hosts.txt is not installed")
    arguments = [files[0], "--method=cart", "--sweep=depth=1,2", "--sweep=min_leaf=1,20"]
    evaluation = evaluate(capsys, *arguments)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None
    ) as cluster:
        there = evaluate(capsys, *arguments, f"--dask={cluster.scheduler_address}")
        with distributed.Client(cluster) as client:
            log = client.get_worker_logs()
    assert len(log) == 2
    names = [r["variant"] for r in evaluation["results"]]
    assert len(names) == 4
    assert sum("depth 1" in name for name in names) == sum("min_leaf 20" in name for name in names) == 2
    kept = ("variant", "accuracy", "accuracies", "leaves")
    assert [{k: r.get(k) for k in kept} for r in there["results"]] == [
        {k: r.get(k) for k in kept} for r in evaluation["results"]
    ]


def test_missing_cluster_is_reported(capsys, files, monkeypatch):
    pytest.importorskip("distributed", reason="requirements-hosts.txt is not installed")
    monkeypatch.setattr("trainer.cli.evaluate.CONNECT_SECONDS", 1)
    with pytest.raises(CommandError, match="no dask scheduler"):
        call_command("evaluate", files[0], "--method=cart", "--dask=tcp://127.0.0.1:1")


def test_sweep_over_unknown_parameter_is_refused(capsys, files):
    with pytest.raises(CommandError, match="nonsense"):
        call_command("evaluate", files[0], "--method=cart", "--sweep=nonsense=1,2")


def test_rows_held_out_and_the_tree_on_the_others(capsys, files, tmp_path):
    model = tmp_path / "model.json"
    state = tmp_path / "state.jsonl"
    options = ["--method=cart", "--depth=2", "--test-share=0.25", "--nested", f"--model={model}", f"--state={state}"]
    evaluation = evaluate(capsys, files[0], *options)
    document = json.loads(model.read_text())
    assert evaluation["whole"]["n"] == 90
    assert document["metrics"]["test"]["n"] == 30
    assert sum(json.loads(line)["n"] for line in state.read_text().splitlines() if json.loads(line)["second"] < 0) == 90
    assert len(state.read_text().splitlines()) == 3 + 3


@pytest.mark.parametrize("method", ["cart", "bivariate"])
def test_model_of_all_rows_has_same_folds_as_train_with_folds(capsys, files, tmp_path, method):
    model, other, state = (tmp_path / name for name in ("model.json", "other.json", "state.jsonl"))
    options = [f"--method={method}", "--depth=2", f"--state={state}", f"--model={model}"]
    evaluate(capsys, files[0], *options)
    lines = state.read_text().splitlines()
    state.write_text("\n".join(lines[:2]) + "\n")  # it goes on with the trees of the folds that are done
    evaluate(capsys, files[0], *options)
    call_command("train", files[0], f"--method={method}", "--depth=2", "--folds=3", f"--output={other}", target="class")
    found, trained = (json.loads(path.read_text()) for path in (model, other))
    assert found["metrics"] == trained["metrics"]
    assert found["rows"] == trained["rows"]
    assert found["parameters"] == trained["parameters"]
    capsys.readouterr()
    call_command("verify", str(model), files[0], json=True)
    claims = json.loads(capsys.readouterr().out.splitlines()[-1])["claims"]
    assert {c["verdict"] for c in claims if c["claim"].startswith("metrics")} == {"recounted"}


def test_one_model_needs_one_method(files, tmp_path):
    with pytest.raises(CommandError, match="writes one model"):
        call_command("evaluate", files[0], "--method=cart", "--method=exact", f"--model={tmp_path / 'm.json'}")


def test_line_of_each_fold_has_the_base_rate(capsys, files):
    call_command("evaluate", files[0], "--target=class", "--method=cart", "--depth=2", "--folds=3")
    lines = [line for line in capsys.readouterr().err.splitlines() if ", fold " in line]
    assert len(lines) == 3
    assert all(re.search(r": [0-9.]+ % \(always the most frequent class: [0-9.]+ %\), ", line) for line in lines)
