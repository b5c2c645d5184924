"""Training from counts equals training from rows, and counting can be divided and resumed."""

from __future__ import annotations

import gzip
import json
import pickle
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.trainer.counts.counts_cases import of_rows
from tests.trainer.counts.tables import KEY, TARGET, counted, random_rows, write_rows
from trainer.certificate import Evidence
from trainer.check.recount import verdict, verify
from trainer.cli.dispatch import main
from trainer.counts import collect, files
from trainer.counts.collect import CountRequest
from trainer.counts.collect import count as count_source
from trainer.counts.files import FileSource
from trainer.counts.folder import NUMBERS, Counts, merge, read_counts, suppress_small, write_counts
from trainer.counts.frontier import leaf_frontier
from trainer.counts.good_trees import count_good_trees
from trainer.counts.kernels import add_counts
from trainer.counts.recount import recount
from trainer.counts.sets import number_of_sets, pair_places, place
from trainer.counts.train import train_counts
from trainer.data.reader import load
from trainer.errors import DataError, InfeasibleError, ParameterError
from trainer.kernels.bits import pack_bits
from trainer.sklearn_api.estimators import CartClassifier, ExactTreeClassifier
from trainer.training.cost_frontier import cost_frontier
from trainer.training.run import TrainRequest
from trainer.tree.file import write
from trainer.workbench.good_trees import GoodRequest
from trainer.workbench.requests import WorkbenchSession

SETTINGS = ("leaf_penalty", "max_leaves", "min_leaf", "forbidden")


def random_settings(rng: np.random.Generator) -> dict[str, object]:
    """Return some random restrictions."""
    found: dict[str, object] = {"leaf_penalty": float(rng.choice([0, 0.01, 0.03, 0.1]))}
    if rng.random() < 0.3:
        found["max_leaves"] = int(rng.integers(1, 9))
    elif rng.random() < 0.4:
        found["min_leaf"] = int(rng.integers(1, 6))
    if rng.random() < 0.3:
        found["forbidden"] = str(rng.choice(["a", "b; colour", "c"]))
    return found


@pytest.mark.parametrize("questions", [0, 1, 2, 5])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_numbers_are_those_of_a_plain_count_in_their_order(questions, depth):
    rng = np.random.default_rng(questions)
    bits = rng.integers(0, 2, (200, questions)).astype(np.uint8)
    out = np.zeros(number_of_sets(questions, depth), np.int64)
    out[0] = len(bits)
    add_counts(pack_bits(np.ascontiguousarray(bits.T)), depth, out)
    sets = [s for size in range(depth + 1) for s in combinations(range(questions), size)]
    assert out.tolist() == [int(bits[:, list(s)].all(axis=1).sum()) for s in sets]
    assert [place(questions, set(s)) for s in sets] == list(range(len(sets)))
    if depth > 1:
        assert all(
            pair_places(questions)[a, b] == place(questions, {a, b}) for a in range(questions) for b in range(questions)
        )


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("classes", [2, 3])
def test_trees_from_counts_are_as_good_as_trees_from_rows(tmp_path, count, depth, classes):
    for seed in range(4 * count):
        rng = np.random.default_rng([seed, depth, classes])
        path = write_rows(random_rows(rng, classes=classes), tmp_path / f"{seed}.csv")
        settings = random_settings(rng)
        counts = counted(path, tmp_path / str(seed), depth=depth)
        try:
            expected = of_rows(path, depth, **settings).certificate
        except InfeasibleError:
            with pytest.raises(InfeasibleError):
                train_counts(counts, {"depth": depth, **settings})
            continue
        certificate = train_counts(counts, {"depth": depth, **settings}).certificate
        assert (certificate.status, certificate.n) == (expected.status, expected.n), (seed, settings)
        assert certificate.objective == pytest.approx(expected.objective, abs=1e-12), (seed, settings)
        assert certificate.bound == pytest.approx(certificate.objective, abs=1e-12)


def test_each_node_counts_the_rows_that_reach_it(tmp_path, count):
    for seed in range(4 * count):
        rng = np.random.default_rng(seed)
        path = write_rows(random_rows(rng, classes=3), tmp_path / f"{seed}.csv")
        model = train_counts(counted(path, tmp_path / str(seed)), {"leaf_penalty": 0.01}).model
        table, labels, _ = load(path, target=TARGET, ignore=[KEY])
        leaves = model.tree.apply(table.matrix())
        for leaf in model.tree.leaves:
            own = np.bincount(labels.codes[leaves == leaf.id], minlength=3)
            assert tuple(own.tolist()) == leaf.counts
        again = recount(model, FileSource(path))
        assert again.same
        assert again.correct == model.certificate["correct"]


def test_folds_are_dealt_by_the_key_and_judged_by_their_rows(tmp_path, count):
    for seed in range(2 * count):
        rng = np.random.default_rng(seed)
        rows = random_rows(rng)
        path = write_rows(rows, tmp_path / f"{seed}.csv")
        counts = counted(path, tmp_path / str(seed), folds=3, key=KEY)
        model = train_counts(counts, {"leaf_penalty": 0.02}).model
        crossed = model.metrics["cross_validation"]
        table, labels, _ = load(path, target=TARGET, ignore=[KEY])
        people = [row[rows[0].index(KEY)] for row in rows[1:]]
        folds = collect.folds_of(collect.Cells.of(pa.array(people)), 3)
        assert all(len({fold for fold, own in zip(folds, people, strict=True) if own == one}) == 1 for one in people)
        for fold, nodes in enumerate(model.rows["fold_trees"]):
            shown = replace(model.tree, nodes=_tree_of(model, nodes).nodes)
            own = folds == fold
            right = (shown.predict(table.matrix()[own]) == labels.codes[own]).mean()
            assert crossed["accuracies"][fold] == pytest.approx(right)
            assert sum(nodes[0]["counts"]) == int((~own).sum())


def _tree_of(model, nodes):
    from trainer.tree.nodes import tree_from_json

    return tree_from_json(nodes, schema=model.tree.schema, classes=model.tree.classes)


@pytest.mark.slow
def test_any_division_into_files_gives_the_same_numbers(tmp_path, count):
    rng = np.random.default_rng(7)
    rows = random_rows(rng, classes=3)
    whole = counted(write_rows(rows, tmp_path / "whole.csv"), tmp_path / "whole", folds=3, key=KEY)
    for number in range(4 * count):
        order = rng.permutation(len(rows) - 1) + 1
        ends = sorted({0, len(order), *rng.integers(1, len(order), 3).tolist()})
        parts = []
        for i, (start, end) in enumerate(pairwise(ends)):
            path = write_rows([rows[0], *(rows[j] for j in order[start:end])], tmp_path / f"{number}" / f"{i}.csv")
            parts.append(counted(path, tmp_path / f"{number}-{i}", folds=3, key=KEY, questions=whole.questions))
        merged = merge([parts[i] for i in rng.permutation(len(parts))])
        assert (merged.low == whole.low).all()
        assert merged.rows == whole.rows
        folder = counted(
            tmp_path / f"{number}", tmp_path / f"{number}-all", folds=3, key=KEY, questions=whole.questions
        )
        assert folder.sha256 == merged.sha256 == merge(parts).sha256


def test_parquet_csv_and_their_folder_count_the_same(tmp_path):
    rows = random_rows(np.random.default_rng(3), empty=False)
    path = write_rows(rows, tmp_path / "rows.csv")
    columns = {name: [row[j] for row in rows[1:]] for j, name in enumerate(rows[0])}
    typed = {name: [int(v) for v in own] if name in "abc" else own for name, own in columns.items()}
    pq.write_table(pa.table(typed), tmp_path / "rows.parquet")
    first = counted(path, tmp_path / "csv")
    second = counted(tmp_path / "rows.parquet", tmp_path / "parquet")
    assert (first.low == second.low).all()
    assert first.questions == replace(second.questions, asked=first.questions.asked)
    write_rows([rows[0], *rows[1:9]], tmp_path / "both" / "a.csv")
    pq.write_table(pa.table(typed).slice(8), tmp_path / "both" / "b.parquet")
    both = counted(tmp_path / "both", tmp_path / "of-both")
    assert (both.low == first.low).all()


def test_declared_number_categories_stay_categories_in_all_files(tmp_path):
    (tmp_path / "rows").mkdir()
    regions = [["3", "1"], ["1", "2", "3"]]
    for i, names in enumerate(regions):
        region = pa.array([int(names[j % len(names)]) for j in range(30)]).dictionary_encode()
        label = pa.array(["yes" if j % 3 else "no" for j in range(30)])
        pq.write_table(pa.table({"region": region, TARGET: label}), tmp_path / "rows" / f"{i}.parquet")
    counts = counted(tmp_path / "rows", tmp_path / "counts", options={})
    assert [feature.name for feature in counts.questions.encoding.features] == ["region=1", "region=2", "region=3"]
    at = place(3, {0})
    assert counts.total[0][:, at].sum() == 15 + 10


def test_ordered_categories_beside_texts_are_counted(tmp_path):
    (tmp_path / "rows").mkdir()
    label = pa.array(["yes" if j % 3 else "no" for j in range(30)])
    codes = pa.array([j % 2 for j in range(30)])
    ordered = pa.DictionaryArray.from_arrays(codes, pa.array(["low", "high"]), ordered=True)
    pq.write_table(pa.table({"level": ordered, TARGET: label}), tmp_path / "rows" / "0.parquet")
    pq.write_table(pa.table({"level": ordered.cast(pa.string()), TARGET: label}), tmp_path / "rows" / "1.parquet")
    counts = counted(tmp_path / "rows", tmp_path / "counts", options={})
    assert [feature.name for feature in counts.questions.encoding.features] == ["level=low"]
    assert counts.total[0][1].tolist() == [40, 20]


class Stopped(Exception):
    """The pass was stopped from outside."""


def test_a_pass_that_is_stopped_ten_times_gives_the_same_file(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PIECE_ROWS", 4)
    monkeypatch.setattr(collect, "SECONDS", 0.0)
    rng = np.random.default_rng(5)
    for i in range(3):
        write_rows(random_rows(rng, classes=2), tmp_path / "rows" / f"{i}.csv")
    whole = counted(tmp_path / "rows", tmp_path / "whole", folds=2, key=KEY)
    request = CountRequest(
        source=tmp_path / "rows", target=TARGET, depth=3, bins=4, folds=2, key=KEY, options={"ignore": [KEY]}, threads=1
    )
    reached = []
    for attempt in range(10):

        def stop(phase, rows, attempt=attempt):
            if phase == "counting":
                reached.append(rows)
                if len(reached) % 3 == 0:
                    raise Stopped

        with pytest.raises(Stopped):
            count_source(request, tmp_path / "again", stop)
    assert reached == sorted(reached)  # no row is counted twice
    again = count_source(request, tmp_path / "again")
    assert again.sha256 == whole.sha256
    assert (tmp_path / "again" / NUMBERS).read_bytes() == (tmp_path / "whole" / NUMBERS).read_bytes()
    assert sorted(p.name for p in (tmp_path / "again").iterdir()) == ["counts.json", "counts.npz"]


def test_another_request_does_not_go_on_with_an_old_pass(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PIECE_ROWS", 4)
    monkeypatch.setattr(collect, "SECONDS", 0.0)
    path = write_rows(random_rows(np.random.default_rng(5)), tmp_path / "rows.csv")
    request = CountRequest(source=path, target=TARGET, bins=4, options={"ignore": [KEY]}, threads=1)

    def stop(phase, rows):
        if rows > 8 and phase == "counting":
            raise Stopped

    with pytest.raises(Stopped):
        count_source(request, tmp_path / "counts", stop)
    write_rows(random_rows(np.random.default_rng(6)), path)  # the rows change before the command is repeated
    assert count_source(request, tmp_path / "counts").sha256 == counted(path, tmp_path / "fresh").sha256


def test_questions_of_a_large_source_come_from_every_kth_row(tmp_path, monkeypatch):
    monkeypatch.setattr(collect, "MIN_SAMPLE_ROWS", 50)
    monkeypatch.setattr(files, "PIECE_ROWS", 64)
    rng = np.random.default_rng(1)
    rows = [
        ["value", TARGET],
        *([f"{rng.normal():.6f}", str(rng.choice(["yes", "no"]))] for _ in range(1000)),
        ["0.5", "rare"],
    ]
    counts = count_source(
        CountRequest(source=write_rows(rows, tmp_path / "rows.csv"), target=TARGET, bins=4), tmp_path / "counts"
    )
    assert counts.rows == 1001
    assert counts.questions.classes == ("no", "rare", "yes")  # no k-th row has the class "rare", but it must be there
    assert counts.questions.asked["of_rows"] == 1001
    assert 50 <= counts.questions.asked["from_rows"] <= 110
    assert counts.total[0][:, 0].sum() == 1001


def test_rows_without_an_answer_are_left_out_and_counted(tmp_path):
    first = write_rows(
        [["a", "b", TARGET], *([str(i % 5), str(i % 3), "no" if i % 2 else "yes"] for i in range(30))],
        tmp_path / "a.csv",
    )
    questions = counted(first, tmp_path / "first", options={}).questions
    other = [["a", "b", TARGET], ["", "1", "yes"], ["2", "1", ""], ["2", "1", "maybe"], ["3", "0", "no"]]
    counts = counted(write_rows(other, tmp_path / "b.csv"), tmp_path / "second", questions=questions, options={})
    assert counts.rows == 1
    assert sum(counts.left_out.values()) == 3
    assert counts.left_out[collect.NO_CLASS] == 2


def test_small_numbers_of_omitted_rows_are_suppressed(tmp_path):
    rows = [
        ["a", "b", TARGET],
        *([str(i % 5), str(i % 3), "no" if i % 2 else "yes"] for i in range(30)),
        ["1", "1", ""],
    ]
    counts = counted(write_rows(rows, tmp_path / "rows.csv"), tmp_path / "counts", suppress=5, options={})
    assert counts.left_out == {}
    assert counted(tmp_path / "rows.csv", tmp_path / "open", options={}).left_out == {collect.NO_CLASS: 1}


def test_a_target_of_numbers_without_end_is_refused(tmp_path):
    rows = [["a", TARGET], *([str(i % 5), str(i)] for i in range(1100))]
    with pytest.raises(DataError, match="too many for classes"):
        counted(write_rows(rows, tmp_path / "rows.csv"), tmp_path / "counts", options={})


def test_file_changed_during_count_is_refused(tmp_path):
    path = write_rows(random_rows(np.random.default_rng(1)), tmp_path / "rows.csv")
    request = CountRequest(source=path, target=TARGET, bins=4, options={"ignore": [KEY]}, threads=1)

    def change(phase, rows):
        if phase == "counting":
            write_rows(random_rows(np.random.default_rng(2)), path)

    with pytest.raises(DataError, match=r"rows\.csv was changed while it was counted"):
        count_source(request, tmp_path / "counts", change)
    assert not (tmp_path / "counts" / "counts.json").exists()


@pytest.mark.parametrize("least", [2, 5])
def test_secret_numbers_leave_true_intervals_and_a_true_gap(tmp_path, count, least):
    for seed in range(2 * count):
        rng = np.random.default_rng(seed)
        path = write_rows(random_rows(rng), tmp_path / f"{seed}.csv")
        whole = counted(path, tmp_path / f"{seed}-whole")
        secret = suppress_small(whole, least)
        assert (secret.low <= whole.low).all()
        assert (whole.low <= secret.high).all()
        assert not ((secret.low > 0) & (secret.low < least) & (secret.high != least - 1)).any()
        best = train_counts(whole, {"leaf_penalty": 0.01}).certificate
        found = train_counts(secret, {"leaf_penalty": 0.01})
        assert found.certificate.bound >= best.objective - 1e-12
        assert found.certificate.correct <= recount(found.model, FileSource(path)).correct
        if found.certificate.bound > found.certificate.objective:
            assert found.certificate.status == "secret_counts"
            assert not found.summary["proved_optimal"]


def test_duplicate_part_is_refused(tmp_path):
    path = write_rows(random_rows(np.random.default_rng(1)), tmp_path / "rows.csv")
    first = counted(path, tmp_path / "first")
    with pytest.raises(DataError, match="would count twice"):
        merge([first, first])


def test_counts_of_other_questions_do_not_add_up(tmp_path):
    path = write_rows(random_rows(np.random.default_rng(1)), tmp_path / "rows.csv")
    with pytest.raises(DataError, match="their 'questions' differ"):
        merge([counted(path, tmp_path / "first"), counted(path, tmp_path / "second", bins=3)])


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"depth": 3}, "depth"),
        ({"recall": "c7: 0.9"}, "recall"),
        ({"monotone": "a up"}, "monotone"),
        ({"max_columns": 2}, "max_columns"),
        ({"bins": 7}, "bins"),
        ({"forbidden": "colr"}, "forbidden"),
        ({"optimal_trees": 3}, "optimal_trees"),
    ],
)
def test_options_unsupported_by_counts_are_refused_by_name(tmp_path, parameters, name):
    counts = counted(write_rows(random_rows(np.random.default_rng(1)), tmp_path / "rows.csv"), tmp_path / "c", depth=2)
    with pytest.raises(ParameterError) as caught:
        train_counts(counts, parameters)
    assert list(caught.value.errors) == [name]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"depth": 4}, "depth"),
        ({"folds": 1, "key": KEY}, "folds"),
        ({"folds": 5}, "key"),
        ({"key": KEY}, "key"),
        ({"folds": 2, "key": TARGET}, "key"),
        ({"suppress": 1}, "suppress"),
        ({"bins": 1}, "bins"),
        ({"threads": -1}, "threads"),
        ({"suppress": 5, "folds": 2, "key": KEY}, "suppress"),
    ],
)
def test_bad_requests_are_refused_by_name(tmp_path, changes, name):
    path = write_rows(random_rows(np.random.default_rng(1)), tmp_path / "rows.csv")
    with pytest.raises(ParameterError) as caught:
        counted(path, tmp_path / "counts", **changes)
    assert list(caught.value.errors) == [name]
    assert not (tmp_path / "counts").exists()


def test_changed_numbers_are_refused(tmp_path):
    counts = counted(write_rows(random_rows(np.random.default_rng(1)), tmp_path / "rows.csv"), tmp_path / "counts")
    low = counts.low.copy()
    low[0, 0, 5] += 1
    np.savez_compressed(tmp_path / "counts" / NUMBERS, low=low)
    with pytest.raises(DataError, match="do not match their SHA-256"):
        read_counts(tmp_path / "counts")


def test_a_folder_with_counts_is_not_written_over(tmp_path):
    path = write_rows(random_rows(np.random.default_rng(1)), tmp_path / "rows.csv")
    first = counted(path, tmp_path / "counts")
    with pytest.raises(DataError, match="holds counts already"):
        counted(path, tmp_path / "counts", bins=3)
    assert read_counts(tmp_path / "counts").sha256 == first.sha256


def test_estimator_fitted_to_counts_predicts_and_saves_its_proof(tmp_path):
    path = write_rows(random_rows(np.random.default_rng(4), classes=3), tmp_path / "rows.csv")
    counted(path, tmp_path / "counts", depth=2)
    estimator = ExactTreeClassifier(depth=2, leaf_penalty=0.01).fit_counts(tmp_path / "counts")
    frame = pd.read_csv(path)[list(estimator.feature_names_in_)]
    table, _, _ = load(path, target=TARGET, ignore=[KEY])
    expected = np.array(["c0", "c1", "c2"])[estimator.tree_.predict(table.matrix())]
    assert (estimator.predict(frame) == expected).all()
    cheap = ExactTreeClassifier(depth=2, costs={"c0": {"c1": 5}}, cost_unit="EUR").fit_counts(tmp_path / "counts")
    assert cheap.certificate_.costs["unit"] == "EUR"
    estimator.save(tmp_path / "model.json")
    assert verdict(verify(tmp_path / "model.json", tmp_path / "counts")) == "proved"
    estimator.save(tmp_path / "with.json", proof=True)
    assert verdict(verify(tmp_path / "with.json", tmp_path / "counts", tmp_path / "with.proof.jsonl.gz")) == "proved"
    with pytest.raises(ValueError, match="no search for"):
        pickle.loads(pickle.dumps(estimator)).save(tmp_path / "with.json", proof=True)
    assert estimator.verdict_.sentence
    assert estimator._html_repr()


def test_an_estimator_refuses_counts_that_it_cannot_use(tmp_path):
    counted(write_rows(random_rows(np.random.default_rng(4)), tmp_path / "rows.csv"), tmp_path / "counts", depth=2)
    with pytest.raises(ParameterError, match="needs rows"):
        CartClassifier().fit_counts(tmp_path / "counts")
    with pytest.raises(ParameterError, match="class_weight"):
        ExactTreeClassifier(depth=2, class_weight="balanced").fit_counts(tmp_path / "counts")
    with pytest.raises(ValueError, match="no search for"):
        ExactTreeClassifier(depth=2).fit_counts(tmp_path / "counts").prove()


def test_sums_of_large_counts_stay_exact(tmp_path):
    counts = counted(write_rows(random_rows(np.random.default_rng(2)), tmp_path / "rows.csv"), tmp_path / "counts")
    large: Counts = replace(counts, low=counts.low * 10**12, high=counts.low * 10**12, rows=counts.rows * 10**12)
    large = replace(large, high=large.low)
    small = train_counts(counts, {"leaf_penalty": 0.01}).certificate
    certificate = train_counts(large, {"leaf_penalty": 0.01}).certificate
    assert certificate.correct == small.correct * 10**12
    assert certificate.objective == pytest.approx(small.objective, abs=1e-15)
    write_counts(large, tmp_path / "large")
    assert read_counts(tmp_path / "large").sha256 == large.sha256


@pytest.mark.parametrize("kind", ["parquet", "csv", "gzip", "header alone"])
def test_parts_without_rows_count_nothing(kind, tmp_path):
    header, *rows = random_rows(np.random.default_rng(4))
    whole = counted(write_rows([header, *rows], tmp_path / "whole.csv"), tmp_path / "counts")
    parts = tmp_path / "parts"
    write_rows([header, *rows[:7]], parts / "b.csv")
    write_rows([header, *rows[7:]], parts / "d.csv")
    for name in ("a", "c", "e"):
        if kind == "parquet":
            empty = pa.table({column: pa.array([], pa.string()) for column in header})
            pq.write_table(empty, parts / f"{name}.parquet")
        elif kind == "gzip":
            (parts / f"{name}.csv.gz").write_bytes(gzip.compress(b"\n"))
        else:
            (parts / f"{name}.csv").write_text("" if kind == "csv" else ",".join(header) + "\n")
    found = counted(parts, tmp_path / "more")
    assert found.rows == whole.rows == len(rows)
    assert (found.of_path(set(), set())[0] == whole.of_path(set(), set())[0]).all()


def test_folder_without_any_row_is_refused(tmp_path):
    for name in ("a", "b"):
        write_rows([["x", TARGET]], tmp_path / "parts" / f"{name}.csv")
    with pytest.raises(DataError, match="row"):
        counted(tmp_path / "parts", tmp_path / "counts", options={})


def random_costs(rng: np.random.Generator, classes: int) -> str:
    """Return costs as text: ties, decimals, zeros, and sometimes a cost of the true class."""
    pairs = [(a, b) for a in range(classes) for b in range(classes) if a != b or rng.random() < 0.2]
    return "; ".join(f"c{a}>c{b}={rng.choice(['0', '1', '2.5', '7', '0.25'])}" for a, b in pairs)


def check_costs_of_rows(path: Path, folder: Path, rng: np.random.Generator, depth: int, classes: int) -> bool:
    """Compare the least cost from counts with that from rows, and check the claim; return whether there was a tree."""
    settings = random_settings(rng) | {"costs": random_costs(rng, classes), "cost_unit": "EUR"}
    counts = counted(path, folder, depth=depth)
    try:
        expected = of_rows(path, depth, **settings)
    except (InfeasibleError, ParameterError) as error:
        with pytest.raises(type(error)):
            train_counts(counts, {"depth": depth, **settings})
        return False
    found = train_counts(counts, {"depth": depth, **settings})
    record = found.certificate.costs
    rows = expected.certificate.costs
    assert record is not None
    assert rows is not None
    for name in ("least", "leaf_price", "floor", "step", "best_constant", "costs", "unit", "rounding_error"):
        assert record[name] == pytest.approx(rows[name]) if name == "least" else record[name] == rows[name], (
            name,
            settings,
        )
    assert found.certificate.status == "optimal"
    total = record["cost"] + record["leaf_price"] * found.certificate.leaves
    assert total == pytest.approx(rows["cost"] + rows["leaf_price"] * expected.certificate.leaves)
    assert found.model.metrics["train"]["cost"] == record["cost"]
    if not settings.get("min_leaf"):
        assert found.certificate.objective == pytest.approx(expected.certificate.objective, abs=1e-12)
    write(found.model, path.with_suffix(".json"))
    findings = verify(path.with_suffix(".json"), folder)
    assert verdict(findings) == "proved", [f for f in findings if f.verdict not in ("proved", "recounted")]
    return True


@pytest.mark.parametrize("classes", [2, 3])
def test_least_cost_from_counts_is_that_of_rows(tmp_path, count, classes):
    solved = 0
    for seed in range(2 * count):
        rng = np.random.default_rng([seed, classes])
        path = write_rows(random_rows(rng, classes=classes), tmp_path / f"{seed}.csv")
        solved += check_costs_of_rows(path, tmp_path / str(seed), rng, 1 + seed % 3, classes)
    assert solved > count


def test_frontier_from_counts_is_that_of_rows(tmp_path, count):
    for seed in range(2 * count):
        rng = np.random.default_rng([seed, 11])
        path = write_rows(random_rows(rng, classes=2 + seed % 2), tmp_path / f"{seed}.csv")
        depth = 1 + seed % 3
        counts = counted(path, tmp_path / str(seed), depth=depth)
        settings = {"leaf_penalty": 0.0, "max_leaves": 2**depth}
        certificate = of_rows(path, depth, **settings).certificate
        expected = next(e for e in certificate.evidence if e["kind"] == Evidence.LEAF_FRONTIER)
        found = leaf_frontier(counts, {"depth": depth, **settings})
        assert found.status == "optimal"
        assert [p["leaves"] for p in found.evidence["points"]] == [p["leaves"] for p in expected["points"]]
        for point, of_row in zip(found.evidence["points"], expected["points"], strict=True):
            assert (point["correct"], point["bound"]) == (of_row["correct"], of_row["bound"]), seed
            leaves = [node for node in point["tree"] if "class" in node]
            names = counts.questions.classes
            assert len(leaves) == point["leaves"]
            assert sum(node["counts"][names.index(node["class"])] for node in leaves) == point["correct"]
        priced = settings | {"costs": random_costs(rng, 2 + seed % 2), "cost_unit": "EUR", "depth": depth}
        try:
            costs = leaf_frontier(counts, priced).costs()
        except ParameterError:  # all answers cost the same
            continue
        table, labels, _ = load(path, target=TARGET, ignore=[KEY])
        of_table = cost_frontier(
            TrainRequest(table=table, labels=labels, method="exact", parameters=priced | {"bins": 4})
        )
        assert costs.best_constant == of_table.best_constant
        assert costs.floor == of_table.floor
        keys = ("leaves", "cost", "least", "proved")
        assert [[p[k] for k in keys] for p in costs.points] == [[p[k] for k in keys] for p in of_table.points], seed


def test_number_of_good_trees_is_that_of_rows(tmp_path, count):
    for seed in range(2 * count):
        rng = np.random.default_rng([seed, 13])
        empty = seed % 3 == 1
        path = write_rows(random_rows(rng, classes=2 + seed % 2, empty=empty), tmp_path / f"{seed}.csv")
        depth = 1 + seed % 3
        settings = {"depth": depth, "leaf_penalty": float(rng.choice([0, 0.01, 0.03]))}
        if seed % 4 == 1:
            settings["min_leaf"] = 3
        if seed % 4 == 2:
            settings["forbidden"] = "b"
        slack = {"slack_rows": "2.5"} if seed % 2 else {"slack": "0.2"}
        counts = counted(path, tmp_path / str(seed), depth=depth)
        table, labels, _ = load(path, target=TARGET, ignore=[KEY])
        request = TrainRequest(table=table, labels=labels, method="exact", parameters=settings | {"bins": 4})
        session = WorkbenchSession(request)
        expected = session.good_trees(GoodRequest(**slack), session.monitor(), None)
        found = count_good_trees(counts, settings, **{name: Fraction(text) for name, text in slack.items()})
        assert (found.count, found.count_without_idle) == (expected["count"], expected["count_without_idle"]), seed
        assert found.optimum == pytest.approx(expected["optimum"], abs=1e-12)
        assert found.limit == pytest.approx(expected["limit"], abs=1e-12)
        assert found.count - sum(found.first_questions.values()) in (0, 1)  # the tree of one leaf asks nothing
        if not empty:  # the record of the rows has one text for questions that differ in their empty cells
            assert sorted(found.first_questions.values()) == sorted(expected["first_questions"].values())


def test_good_trees_command_reads_a_folder_of_counts(tmp_path, capsys):
    path = write_rows(random_rows(np.random.default_rng(4)), tmp_path / "rows.csv")
    counted(path, tmp_path / "counts", depth=2)
    command = ["good-trees", str(tmp_path / "counts"), "--depth", "2", "--leaf-penalty", "0.01", "--slack-rows", "2"]
    assert main("octweb", [*command, "--json"]) == 0
    record = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert record["count"] >= record["count_without_idle"] > 0
    assert record["rows"] is None
    assert record["status"].startswith("left")
    assert main("octweb", command) == 0
    assert "ask first" in capsys.readouterr().out
    assert main("octweb", [*command, "--must", "c", "--max-leaves", "3", "--list", "2", "--json"]) == 0
    chosen = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert chosen["count"] == chosen["columns"]["c"]["trees"] <= record["count"]
    assert len(chosen["trees"]) == min(2, chosen["count"])
    assert (chosen["optimum"], chosen["limit"]) == (record["optimum"], record["limit"])
    for refused in (["--sample", "2"], ["--cost", "c0>c1=5"], ["--depth", "3"], ["--must", "x"], ["--list", "9999"]):
        assert main("octweb", [*command, *refused]) != 0
    assert main("octweb", ["good-trees", str(path), "--slack", "0.1"]) != 0


def test_frontier_of_secret_counts_holds_the_true_one(tmp_path, count):
    for seed in range(count):
        path = write_rows(random_rows(np.random.default_rng(seed)), tmp_path / f"{seed}.csv")
        whole = counted(path, tmp_path / str(seed))
        true = {p["leaves"]: p["correct"] for p in leaf_frontier(whole).evidence["points"]}
        secret = leaf_frontier(suppress_small(whole, 4)).evidence
        bounds = {p["leaves"]: p["bound"] for p in secret["points"] + secret["unsettled"]}
        correct = {p["leaves"]: p["correct"] for p in secret["points"]}
        for leaves in range(1, 9):
            best = max(n for size, n in true.items() if size <= leaves)
            assert max(n for size, n in bounds.items() if size <= leaves) >= best
            assert max(n for size, n in correct.items() if size <= leaves) <= best


def test_frontier_command_reads_a_folder_of_counts(tmp_path, capsys):
    path = write_rows(random_rows(np.random.default_rng(4)), tmp_path / "rows.csv")
    counted(path, tmp_path / "counts", depth=2)
    folder = str(tmp_path / "counts")
    for costs in ([], ["--cost", "c0>c1=5", "--cost-unit", "EUR"]):
        assert main("octweb", ["frontier", folder, "--method", "exact", "--depth", "2", *costs, "--json"]) == 0
        record = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert record["status"] == "optimal"
        assert all(point["proved"] for point in record["points"])
        assert main("octweb", ["frontier", folder, "--method", "exact", "--depth", "2", *costs]) == 0
        assert "yes" in capsys.readouterr().out
    assert main("octweb", ["frontier", folder, "--method", "exact", "--depth", "3"]) != 0
    assert "at most 2" in capsys.readouterr().err
    assert main("octweb", ["frontier", folder, "--method", "odt", "--depth", "2"]) != 0
    assert main("octweb", ["frontier", str(path), "--method", "exact", "--depth", "2"]) != 0
    assert "name the column" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_many_least_costs_from_counts_are_those_of_rows(tmp_path, count, classes):
    for seed in range(10 * count):
        rng = np.random.default_rng([seed, classes, 7])
        path = write_rows(random_rows(rng, classes=classes), tmp_path / f"{seed}.csv")
        check_costs_of_rows(path, tmp_path / str(seed), rng, 1 + seed % 3, classes)


@pytest.mark.parametrize("costs", ["c0>c1=2*a", "c0>c1=0; c1>c0=0", "c0>c9=1", "rows"])
def test_costs_that_counts_do_not_know_are_refused(tmp_path, costs):
    counts = counted(write_rows(random_rows(np.random.default_rng(1)), tmp_path / "rows.csv"), tmp_path / "c", depth=2)
    with pytest.raises(ParameterError) as caught:
        train_counts(counts, {"depth": 2, "costs": costs})
    assert list(caught.value.errors) == ["costs"]
    with pytest.raises(ParameterError, match="secret"):
        train_counts(suppress_small(counts, 3), {"depth": 2, "costs": "c0>c1=5"})
