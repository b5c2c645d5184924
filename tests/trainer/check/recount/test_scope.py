"""The scope names the splits and every restriction, in file, summary and check."""

from __future__ import annotations

import numpy as np
import pytest

from tests.octweb.small_models import small_table
from tests.trainer.check.recount.files import TWO_CLASSES, csv_text, findings, trained
from tests.trainer.check.recount.search_settings import OF_THE_SEARCH
from trainer.check.proof.model import ModelTable
from trainer.check.recount import verify
from trainer.check.recount.scope import scope
from trainer.data.reader import load
from trainer.families.oblique import plan, planes
from trainer.families.odt.grouping import make_groups
from trainer.families.odt.method import scope as odt_scope
from trainer.families.odt.topology import complete
from trainer.methods.scope import scope_of
from trainer.registry import METHODS, get
from trainer.solver_common.problem_setup import file_parameters, pose
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table
from trainer.training.run import TrainRequest, save, train

# Parameter → a value that restricts the trees of the small table, and the words that the scope must contain.
RESTRICTING = {
    "depth": (1, "depth ≤ 1"),
    "min_leaf": (3, "at least 3 rows in a leaf"),
    "max_leaves": (2, "at most 2 leaves"),
    "max_columns": (1, "at most 1 column"),
    "recall": ("a: 0.5", "recall of a ≥ 0.5"),
    "fairness": ("opportunity", "b predicted at rates at most 0.5 apart between groups of flag among rows of b"),
    "forbidden_pairs": ("length + width", "no path with both length and width"),
    "monotone": ("length up", "classes only rising along length"),
    "forbidden": ("flag; width", "no question on flag, no question on width"),
    "balanced": (True, "every path with as many questions as the depth allows"),
    "max_card": (1, "at most 1 category in a subset or outside it"),
    "sensitivity": (0.6, "sensitivity ≥ 0.6"),
    "specificity": (0.6, "specificity ≥ 0.6"),
    "min_node": (10, "no question to fewer than 10 rows"),
    "height": (1, "subtrees of height ≤ 1"),
    "min_gain": (0.01, "each question lowering the impurity by at least 0.01 of the rows"),
}
BESIDE = {
    "fairness": {"fairness_column": "flag", "fairness_class": "b", "fairness_delta": 0.5},
    "sensitivity": {"positive": "b"},
    "specificity": {"positive": "b"},
}
# These parameters concern the search or the objective, and exclude no tree.
NOT_RESTRICTING = OF_THE_SEARCH | {
    "impurity",
    "then_fewest",
    "paper_lambda",
    "mip_gap",
    "leaf_penalty",
    "class_weight",
    "goal",
    "column_price",
    "negative_weight",
    "coefficient_penalty",
    "unseen_missing",
    "costs",
    "cost_unit",
}
IN_SPACE = {
    "binarise",
    "bins",
    "extra_thresholds",
    "topology",
    "select",
    "big_m",
    "scaling",
}  # the words about splits already cover these


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def test_each_parameter_of_each_method_restricts_or_does_not():
    for method in METHODS:
        for parameter in method.parameters:
            own = parameter.restricts is not None or (method.id == "odt" and parameter.name == "depth")
            known = parameter.name in RESTRICTING
            assert own == known, (method.id, parameter.name)
            assert known or parameter.name in NOT_RESTRICTING | IN_SPACE, (method.id, parameter.name)


CASES = [(method.id, parameter.name) for method in METHODS for parameter in method.parameters if parameter.restricts]


def judged(folder, method, **asked):
    """Return the scope of a method with these parameters, created without a search, and what the checker says about it."""
    classes = 2 if method in TWO_CLASSES or "ity" in "".join(asked) else 3
    data = folder / f"{classes}.csv"
    data.write_text(csv_text(classes=classes))
    table, labels, *_ = load(data, target="class")
    own = get(method)
    settings = own.settings({"depth": 2} | asked)
    problem = pose(table, labels, settings)
    space = {"oct-h": planes.ROBUST_SCOPE, "cut-h": plan.SCOPE, "cutw-h": plan.SCOPE, "s-oct": plan.SCOPE}.get(
        method, ""
    )
    if method == "odt":
        groups = make_groups(problem, settings["bins"], settings["max_card"])
        space = odt_scope(problem, complete(settings["depth"]), groups, settings)
    sentence = scope_of(own, problem, settings, space)
    leaf = {"id": 0, "counts": [0] * classes, "class": "a"}
    model = {
        "method": method, "columns": [c.to_json() for c in table.schema], "nodes": [leaf], "rows": {},
        "parameters": file_parameters(problem, settings), "certificate": {"scope": sentence},
    }  # fmt: skip
    ones = np.ones(len(table), np.int64)
    rows = ModelTable([c.values for c in table.columns], labels.codes, ones, ones)

    def check(text):
        return scope(model | {"certificate": {"scope": text}}, rows).verdict

    return sentence, check


@pytest.mark.slow
@pytest.mark.parametrize(("method", "name"), CASES)
def test_a_restriction_is_in_the_scope(tmp_path, method, name):
    value, words = RESTRICTING[name]
    sentence, check = judged(tmp_path, method, **{name: value}, **BESIDE.get(name, {}))
    without, _ = judged(tmp_path, method)
    assert words in sentence
    assert words not in without
    assert check(sentence) == "recounted"
    assert check(without) == check(sentence + ", at most 7 leaves") == "refuted"


@pytest.mark.parametrize(
    ("method", "asked", "words"),
    [
        ("bendoct", {"max_leaves": 3, "recall": "a: 0.5"}, "at most 3 leaves, recall of a ≥ 0.5"),
        ("exact", {"min_leaf": 4}, "at least 4 rows in a leaf"),
        ("cart", {"min_leaf": 4, "min_node": 9}, "at least 4 rows in a leaf, no question to fewer than 9 rows"),
        ("odt", {"max_card": 1}, "at most 1 category in a subset or outside it"),
        ("cut-h", {"max_leaves": 2, "time_limit": 1}, "at most 2 leaves"),
    ],
)
def test_trained_files_name_their_restrictions(folder, tmp_path, method, asked, words):
    document, data = trained(folder, method, **asked)
    assert document["certificate"]["scope"].endswith(words)
    line = next(f for f in findings(document, data, tmp_path) if f.claim == "scope")
    assert line.verdict == "recounted", line


@pytest.mark.parametrize("scheme", ["quantile-thresholds", "quantile-buckets", "all-thresholds"])
def test_questions_are_counted(tmp_path, scheme):
    sentence, check = judged(tmp_path, "exact", binarise=scheme, bins=4)
    counted = {
        "quantile-thresholds": "6 thresholds (3 per column)",
        "quantile-buckets": "8 intervals (4 per column)",
        "all-thresholds": "15 thresholds (5 to 10 per column)",
    }
    assert sentence == f"all trees with depth ≤ 2, {counted[scheme]}, 3 categories, 1 yes/no column"
    assert check(sentence) == "recounted"


@pytest.mark.parametrize(
    ("method", "asked", "today", "before"),
    [
        ("exact", {"binarise": "all-thresholds"}, "(5 to 10 per column)", "(5 to 10 a column)"),
        ("exact", {"bins": 4}, "(3 per column)", "(3 a column)"),
        ("odt", {}, "at most 2 per row)", "at most 2 a row)"),
        ("odt", {"max_card": 1}, "at most 1 category in", "at most 1 categories in"),
    ],
)
def test_scope_texts_of_older_files_are_accepted(tmp_path, method, asked, today, before):
    sentence, check = judged(tmp_path, method, **asked)
    assert today in sentence
    assert check(sentence) == check(sentence.replace(today, before)) == "recounted"
    assert (
        check(sentence.replace(today, before.replace("at most", "at least").replace("a column", "a row"))) == "refuted"
    )


def test_the_summary_has_the_scope():
    table, labels = small_table()
    result = train(TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": 1, "max_leaves": 2}))
    assert result.summary["scope"] == result.certificate.scope
    assert "at most 2 leaves" in result.summary["scope"]
    assert get("exact").space is not None


@pytest.mark.parametrize("method", [m.id for m in METHODS])
def test_scope_of_single_class_is_written_again(method, tmp_path):
    column = Column(schema=ColumnSchema(name="x", kind=ColumnKind.NUMERIC), cells=np.array([1.0, 2.0, 3.0]))
    table = Table(columns=(column,), row_numbers=np.arange(1, 4))
    labels = Labels(name="y", classes=("a",), codes=np.zeros(3, np.int32))
    save(train(TrainRequest(table=table, labels=labels, method=method)).model, tmp_path / "m.json")
    (tmp_path / "rows.csv").write_text("x,y\n1,a\n2,a\n3,a\n")
    findings = verify(tmp_path / "m.json", tmp_path / "rows.csv")
    assert [(f.claim, f.detail) for f in findings if f.verdict == "refuted"] == []
