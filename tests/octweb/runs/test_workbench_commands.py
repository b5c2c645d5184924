"""`manage.py complete` and `manage.py good-trees`: output, model file, errors and exit status."""

from __future__ import annotations

import json
from io import StringIO

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from trainer.check.recount import verify
from trainer.dossier.facts import dossier
from trainer.tree.file import read_model

TRAINED = {"method", "status", "objective", "bound", "gap", "train_accuracy", "correct", "n", "features", "encoded_features",
           "classes", "depth", "leaves", "seconds", "nodes", "solver", "solver_version", "warm_start_objective", "cuts",
           "version"}  # fmt: skip


def run(name, *arguments):
    out = StringIO()
    call_command(name, *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def record_of(name, *arguments):
    return json.loads(run(name, *arguments, "--json").splitlines()[-1])


class Pipe(StringIO):
    """Pipe from which everything that was not flushed is lost if the process dies while it ends."""

    arrived = ""

    def flush(self):
        self.arrived = self.getvalue()


@pytest.mark.parametrize("json_wanted", [[], ["--json"]])
def test_answer_is_sent_before_the_process_ends(csv_file, json_wanted):
    pipe = Pipe()
    given = ["--target=class", "--depth=1", "--slack=0.1", *json_wanted]
    call_command("good-trees", str(csv_file), *given, stdout=pipe, stderr=StringIO())
    assert pipe.arrived == pipe.getvalue() != ""


def test_wish_keeps_its_reason_and_checker_ignores_it(csv_file, tmp_path):
    output = tmp_path / "model.json"
    given = ["--target=class", "--depth=2", "--leaf-penalty=0.01", f"--output={output}", "--wish=leaf n yes"]
    record = record_of("complete", str(csv_file), *given, "--reason", "leaf n yes", "the law says so")
    assert record["wishes"][0]["reason"] == "the law says so"
    assert read_model(output).certificate["wishes"][0]["reason"] == "the law says so"
    findings = {f.claim: f.verdict for f in verify(output, csv_file)}
    assert findings["wish 'leaf n yes'"] == "recounted"
    assert findings["price of the wish 'leaf n yes'"] == "proved"
    facts = dossier(output, csv_file)
    assert facts["claim"]["wishes"][0]["words"] == "After no: always “class yes”"
    assert facts["claim"]["wishes"][0]["reason"] == "the law says so"
    assert "(reason: the law says so)" in run(
        "complete", str(csv_file), *given, "--reason", "leaf n yes", "the law says so"
    )
    with pytest.raises(CommandError, match="there is no wish 'leaf y no'"):
        run("complete", str(csv_file), *given, "--reason", "leaf y no", "why not")


def test_completion_prints_train_record_with_wishes_and_prices(csv_file, tmp_path):
    output = tmp_path / "model.json"
    wishes = ["ask root height <= 2", "forbid y colour", "leaf n yes"]
    arguments = [f"--wish={w}" for w in wishes]
    record = record_of(
        "complete",
        str(csv_file),
        "--target=class",
        "--method=exact",
        "--depth=3",
        "--leaf-penalty=0.01",
        f"--output={output}",
        *arguments,
    )
    assert set(record) >= TRAINED
    assert record["status"] == "optimal"
    assert [w["wish"] for w in record["wishes"]] == wishes
    free = record_of("train", str(csv_file), "--target=class", "--method=exact", "--depth=3", "--leaf-penalty=0.01")
    assert record["objective"] < free["objective"]
    assert record["optimum"]["proved"]
    # the encoding does not have the threshold 2, so the optimum without constraints may be better with it
    assert record["optimum"]["objective"] >= free["objective"] - 1e-12
    for k, wish in enumerate(record["wishes"]):
        rest = [a for j, a in enumerate(arguments) if j != k]
        without = record_of("complete", str(csv_file), "--target=class", "--depth=3", "--leaf-penalty=0.01", *rest)
        if k:  # a held question stays when its wish is dropped
            assert wish["price"] == pytest.approx(without["objective"] - record["objective"])
        assert wish["price"] >= 0
    model = read_model(output)
    assert model.certificate["wishes"] == record["wishes"]
    assert "the wish 'leaf n yes'" in model.certificate["scope"]
    root = model.tree.nodes[0]
    assert root.split.threshold == 2
    leaf = model.tree.nodes[root.right]
    assert leaf.is_leaf
    assert model.tree.classes[leaf.label] == "yes"
    findings = verify(output, csv_file)
    assert not [f for f in findings if f.verdict == "refuted"]


def test_wishes_are_kept_together_with_limits_on_the_whole_tree(csv_file, tmp_path):
    output = tmp_path / "model.json"
    common = [str(csv_file), "--target=class", "--depth=3", "--leaf-penalty=0.001"]
    wish = "--wish=depth n 1"
    limits = ["--set=max_leaves=3", "--set=recall=no:0.9"]
    free = record_of("complete", *common, wish)
    record = record_of("complete", *common, wish, *limits, f"--output={output}")
    assert record["status"] == "optimal"
    assert record["leaves"] <= 3
    assert record["objective"] < free["objective"]
    # without the constraint, the optimum is that of a training within the limits
    trained = record_of("train", *common, "--method=exact", *limits)
    assert record["optimum"] == {"objective": trained["objective"], "bound": trained["objective"], "proved": True}
    verdicts = {f.claim: f.verdict for f in verify(output, csv_file)}
    assert "refuted" not in verdicts.values()
    assert {verdicts["max_leaves"], verdicts["recall no:0.9"], verdicts["wish 'depth n 1'"]} == {"recounted"}
    with pytest.raises(CommandError, match="limits"):
        run("complete", *common, "--wish=leaf root", *limits, "--set=recall=no:1; yes:1")
    with pytest.raises(CommandError, match="filters") as caught:
        run("good-trees", *common, "--slack=0.1", *limits)
    assert caught.value.returncode == 2


def test_wishes_over_all_thresholds(csv_file, tmp_path):
    output = tmp_path / "model.json"
    common = [str(csv_file), "--target=class", "--method=exact-numeric", "--depth=2"]
    record = record_of(
        "complete", *common, "--leaf-penalty=0.01", "--wish=ask root width <= 1.625", f"--output={output}"
    )
    trained = record_of("train", *common, "--leaf-penalty=0.01")
    assert record["status"] == "optimal"
    assert record["encoded_features"] == trained["encoded_features"]
    assert record["optimum"]["objective"] == pytest.approx(trained["objective"])
    assert record["objective"] + record["wishes"][0]["price"] == pytest.approx(trained["objective"])
    findings = {f.claim: f.verdict for f in verify(output, csv_file)}
    assert "refuted" not in findings.values()
    assert findings["bound"] == findings["optimal"] == "proved"


def test_wishes_over_subsets_of_categories(csv_file, tmp_path):
    output = tmp_path / "model.json"
    common = [str(csv_file), "--target=class", "--method=odt", "--depth=2"]
    wishes = ["together root colour in red|blue", "ask root colour", "leaf y no"]
    proof = f"--proof={tmp_path / 'proof.jsonl.gz'}"
    record = record_of("complete", *common, *(f"--wish={w}" for w in wishes), f"--output={output}", proof)
    trained = record_of("train", *common)
    assert record["status"] == "optimal"
    assert record["encoded_features"] == trained["encoded_features"]
    assert record["optimum"]["objective"] == pytest.approx(trained["objective"])
    assert [w["wish"] for w in record["wishes"]] == wishes
    assert record["proof"]["made"]
    model = read_model(output)
    assert set(model.tree.nodes[0].split.names(model.tree.schema)) in ({"green"}, {"red", "blue"})
    for findings in (verify(output, csv_file), verify(output, csv_file, tmp_path / "proof.jsonl.gz")):
        found = {f.claim: f.verdict for f in findings}
        assert "refuted" not in found.values()
        assert found["bound"] == found["optimal"] == "proved"
        assert found["wish 'together root colour in red|blue'"] == "recounted"


def test_wishes_that_contradict_each_other_are_named(csv_file):
    out = StringIO()
    arguments = ["--wish=leaf y no", "--wish=depth n 2", "--wish=ask yn height"]
    with pytest.raises(CommandError) as caught:
        call_command("complete", str(csv_file), "--target=class", "--json", *arguments, stdout=out, stderr=StringIO())
    assert caught.value.returncode == 1
    assert "\n" not in str(caught.value)
    record = json.loads(out.getvalue().splitlines()[-1])
    assert (record["status"], record["conflict"]) == ("infeasible", ["leaf y no", "ask yn height"])


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--wish=ask root colur"], "Did you mean 'colour'"),
        (["--wish=ask root height <= x"], "not a number"),
        (["--set=recall=maybe:0.5"], "recall"),
        (["--depth=99"], "depth"),
        (["--wish=together root colour in red|blue"], "method 'odt'"),
        (["--method=odt", "--wish=together root width in 1|2"], "has numbers"),
        (["--method=odt", "--wish=together root colour in red"], "two or more"),
        (["--method=odt", "--wish=together root colour in red|blue", "--set=max_card=1"], "max_card"),
        (["--method=odt", "--set=select=cart"], "all columns"),
    ],
)
def test_invalid_wishes_and_parameters_exit_2(csv_file, arguments, word):
    with pytest.raises(CommandError) as caught:
        run("complete", str(csv_file), "--target=class", *arguments)
    assert caught.value.returncode == 2
    assert word in str(caught.value)


def test_good_trees_have_the_members_of_the_contract(csv_file):
    record = record_of(
        "good-trees",
        str(csv_file),
        "--target=class",
        "--method=exact",
        "--depth=2",
        "--bins=5",
        "--leaf-penalty=0.01",
        "--slack=0.2",
        "--list=7",
        "--sample=5",
    )
    assert record["status"] == "complete"
    assert record["count"] >= record["count_without_idle"] >= 1
    assert record["count"] >= record["answers"] >= 1
    assert record["optimum"] >= record["limit"]
    objectives = [t["objective"] for t in record["trees"]]
    assert objectives == sorted(objectives, reverse=True)
    assert objectives[0] == pytest.approx(record["optimum"])
    assert len(objectives) == min(7, record["count"])
    assert all(
        t["objective"] >= record["limit"] - 1e-12 and len(t["nodes"]) == 2 * t["leaves"] - 1 for t in record["trees"]
    )
    assert len(record["sample"]) == 5
    assert set(record["columns"]) == {"width", "height", "colour"}
    assert all(0 <= c["asked_least"] <= c["asked_most"] <= 1 for c in record["columns"].values())
    assert all(c["importance_least"] <= c["importance_most"] <= 1 for c in record["columns"].values())
    assert any(c["importance_most"] > 0 for c in record["columns"].values())
    assert sum(record["first_questions"].values()) in (record["count"], record["count"] - 1)
    assert sum(line["trees"] for line in record["first_columns"]) == sum(record["first_questions"].values())
    for line in record["first_columns"]:
        assert sum(line["yes"].values()) == sum(line["no"].values()) == line["trees"]
    assert record["tolerance"][-1][1] == record["count"]
    assert len(record["differ"]) == min(24, len(record["trees"]))
    assert all(row[k] == 0 for k, row in enumerate(record["differ"]))
    rows = record_of(
        "good-trees",
        str(csv_file),
        "--target=class",
        "--depth=2",
        "--bins=5",
        "--leaf-penalty=0.01",
        "--slack=0.2",
        "--disputed=1000",
    )["rows"]
    assert rows["listed"][:10] == record["rows"]["listed"]
    assert 0 < rows["depends"] == len(rows["listed"]) < rows["of"] == 120
    assert all(sum(line["answers"].values()) == record["count"] for line in rows["listed"])


@pytest.mark.slow
def test_filters_choose_and_leave_the_limit_as_it_is(csv_file):
    common = [str(csv_file), "--target=class", "--depth=3", "--leaf-penalty=0.01", "--slack-rows=4"]
    every = record_of("good-trees", *common)
    must = record_of("good-trees", *common, "--must=height")
    without = record_of("good-trees", *common, "--without=height")
    assert must["count"] + without["count"] == every["count"]
    assert must["count"] == every["columns"]["height"]["trees"]
    assert every["limit"] == must["limit"] == without["limit"]
    assert every["optimum"] - every["limit"] <= 4 / 120 + 1e-12
    few = record_of("good-trees", *common, "--max-leaves=4", "--list=100000")
    assert few["count"] == sum(t["leaves"] <= 4 for t in record_of("good-trees", *common, "--list=100000")["trees"])


def test_good_trees_filter_by_agreement_and_group_rates(csv_file, tmp_path):
    model = tmp_path / "model.json"
    common = [str(csv_file), "--target=class", "--depth=2", "--leaf-penalty=0.01", "--bins=5"]
    run("train", *common, "--method=exact", f"--output={model}")
    every = record_of("good-trees", *common, "--slack=0.2", "--list=100000")
    some = record_of(
        "good-trees", *common, "--slack=0.2", f"--agrees-with={model}", "--agree-rows=2, 5-40", "--list=100000"
    )
    whole = record_of("good-trees", *common, "--slack=0.2", f"--agrees-with={model}")
    assert 1 <= whole["count"] <= some["count"] < every["count"]
    assert whole["answers"] == 1
    assert (some["agree_rows"], whole["agree_rows"]) == (37, 120)
    assert "agree_rows" not in every
    listed = [json.dumps(tree["nodes"]) for tree in every["trees"]]
    assert {json.dumps(tree["nodes"]) for tree in some["trees"]} < set(listed)
    fair = record_of(
        "good-trees",
        *common,
        "--slack=0.2",
        "--groups=colour",
        "--difference=0.2",
        "--rate=opportunity",
        "--favoured=yes",
    )
    assert fair["count"] < every["count"]
    with pytest.raises(CommandError, match="line 1 of the file has no training row"):
        run("good-trees", *common, "--slack=0.2", f"--agrees-with={model}", "--agree-rows=1")
    with pytest.raises(CommandError, match="give a tree"):
        run("good-trees", *common, "--slack=0.2", "--agree-rows=3")


@pytest.mark.parametrize(
    "arguments", [["--slack=-1"], ["--slack=0", "--must=none"], ["--slack=0", "--list=-1"], ["--slack=0", "--recall=x"]]
)
def test_invalid_good_trees_options_exit_2(csv_file, arguments):
    with pytest.raises(CommandError) as caught:
        run("good-trees", str(csv_file), "--target=class", *arguments)
    assert caught.value.returncode == 2


def test_stopped_count_states_what_is_missing(csv_file, monkeypatch):
    from trainer.editing.space import SearchStopped
    from trainer.families.exact.rashomon.count import Counter

    def stopped(self, limit):
        raise SearchStopped

    monkeypatch.setattr(Counter, "root", stopped)
    record = record_of("good-trees", str(csv_file), "--target=class", "--depth=2", "--slack=0.1")
    assert record["count"] is None
    assert record["at_least"] == 0
    assert record["status"].startswith("left")


@pytest.mark.parametrize(
    "wishes",
    [
        ["ask root height <= 2", "forbid y colour", "leaf n yes"],
        ["ask root colour in red|green", "depth n 1"],
        ["ask y width", "forbid root height"],
        ["depth root 0"],
        ["leaf root no"],
    ],
)
def test_verify_searches_again_with_the_wishes(csv_file, tmp_path, wishes):
    output = tmp_path / "model.json"
    run(
        "complete",
        str(csv_file),
        "--target=class",
        "--depth=2",
        "--leaf-penalty=0.01",
        f"--output={output}",
        *(f"--wish={w}" for w in wishes),
    )
    findings = {f.claim: f for f in verify(output, csv_file)}
    assert findings["bound"].verdict == "proved"
    assert all(findings[f"wish '{w}'"].verdict == "recounted" for w in wishes)
    document = json.loads(output.read_text())
    document["certificate"]["wishes"] = [{"wish": "leaf root yes", "price": 0}, {"wish": "ask y colour", "price": 0}]
    output.write_text(json.dumps(document))
    assert [f for f in verify(output, csv_file) if f.claim.startswith("wish") and f.verdict == "refuted"]


def test_a_bound_that_is_too_good_with_wishes_is_refuted(csv_file, tmp_path):
    output = tmp_path / "model.json"
    run("complete", str(csv_file), "--target=class", "--depth=2", f"--output={output}", "--wish=leaf y no")
    document = json.loads(output.read_text())
    # the same tree, said to be the best of those without the wish's class: a better one keeps the wish
    worse = run("complete", str(csv_file), "--target=class", "--depth=2", "--wish=depth root 0", f"--output={output}")
    assert worse
    single = json.loads(output.read_text())
    for name in ("wishes", "scope"):
        single["certificate"][name] = document["certificate"][name]
    output.write_text(json.dumps(single))
    assert {f.claim: f.verdict for f in verify(output, csv_file)}["bound"] == "refuted"


def test_count_left_by_each_filter_equals_separate_count(csv_file):
    def counted(*filters):
        given = ["--target=class", "--depth=2", "--leaf-penalty=0.01", "--slack=0.5", *filters]
        return record_of("good-trees", str(csv_file), *given)

    filters = ["--without=height", "--max-leaves=3", "--recall=yes=0.5"]
    left = counted(*filters)["filters"]
    assert [(line["filter"], line["value"]) for line in left] == [
        (None, None), ("without", "height"), ("max_leaves", 3), ("recalls", ["yes", "0.5"]),
    ]  # fmt: skip
    assert [line["count"] for line in left] == [counted(*filters[:k])["count"] for k in range(4)]
    assert "filters" not in counted()


def test_first_questions_with_missing_sides_count_every_tree(tmp_path):
    """Two questions may differ only in the side of empty cells that no row has, and then have one text."""
    rng = np.random.default_rng(5)
    cells = np.where(rng.random((16, 2)) < 0.3, "", rng.integers(0, 4, (16, 2)).astype(str))
    kinds = rng.choice(["p", "q"], 16)
    path = tmp_path / "empty.csv"
    path.write_text("a,b,kind\n" + "".join(f"{a},{b},{kind}\n" for (a, b), kind in zip(cells, kinds, strict=True)))
    record = record_of("good-trees", str(path), "--target=kind", "--depth=2", "--slack-rows=3")
    assert sum(record["first_questions"].values()) in (record["count"], record["count"] - 1)
