"""Files of `exact-numeric` with recalls, pairs and optimal trees: true ones proved, false ones refuted."""

from __future__ import annotations

import pytest

from tests.trainer.check.recount.column_prices_cases import higher_objective, lower_bound, verdict_of
from tests.trainer.check.recount.files import findings, trained
from tests.trainer.check.recount.goals_cases import _file
from tests.trainer.goal_cases import random_case
from trainer.certificate import Evidence
from trainer.check.recount import verdict, verify
from trainer.data.reader import load
from trainer.training.run import TrainRequest, save
from trainer.workbench.requests import WorkbenchSession

ASKED = [
    {"recall": "a: 1"},
    {"forbidden_pairs": "length + colour"},
    {"recall": "c: 0.9", "forbidden_pairs": "width + colour", "leaf_penalty": 0.01},
    {"forbidden_pairs": "length + colour", "costs": "a>b=5; b>a=0.2*length"},
    {"optimal_trees": 1000},
    {"max_columns": 1},
    {"max_columns": 1, "column_price": "width=0.02; length=0.01", "leaf_penalty": 0.01},
    {"forbidden": "length"},
    {"min_leaf": 9},
    {"max_leaves": 3, "forbidden": "colour"},
    {"min_leaf": 6, "costs": "a>b=5; b>a=0.2*length"},
    {"max_leaves": 3, "min_leaf": 4, "recall": "c: 0.9"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@pytest.mark.parametrize("asked", ASKED)
def test_honest_file_with_restrictions_is_proved(folder, tmp_path, asked):
    document, data = trained(folder, "exact-numeric", test_share=0.25, **asked)
    said = findings(document, data, tmp_path)
    assert verdict(said) == "proved", [f for f in said if f.verdict not in ("recounted", "proved")]


def parameter(name, value):
    def change(document):
        document["parameters"][name] = value

    return change


def evidence(name, value):
    def change(document):
        part = next(e for e in document["certificate"]["evidence"] if e["kind"] == Evidence.OPTIMAL_TREES)
        part[name] = value(part[name])

    return change


@pytest.mark.parametrize(
    ("asked", "lie"),
    [
        *((asked, lie) for asked in ASKED for lie in (higher_objective, lower_bound)),
        (ASKED[0], parameter("recall", "")), (ASKED[0], parameter("recall", "a: 0.5")), (ASKED[0], parameter("recall", "a: 1; b: 1")),
        (ASKED[1], parameter("forbidden_pairs", "")), (ASKED[1], parameter("forbidden_pairs", "length + width; length + colour; length + flag")),
        (ASKED[5], parameter("max_columns", 2)), (ASKED[5], parameter("max_columns", 0)), (ASKED[5], parameter("max_columns", None)),
        (ASKED[7], parameter("forbidden", "")), (ASKED[7], parameter("forbidden", "width")),
        (ASKED[8], parameter("min_leaf", 1)), (ASKED[8], parameter("min_leaf", 12)), (ASKED[8], parameter("min_leaf", 4)),
        (ASKED[9], parameter("max_leaves", None)), (ASKED[9], parameter("max_leaves", 4)), (ASKED[9], parameter("max_leaves", 2)),
        (ASKED[4], evidence("count", lambda count: str(int(count) + 1))), (ASKED[4], evidence("count", lambda count: str(int(count) - 1))),
        (ASKED[4], evidence("listed", lambda trees: trees[1:])), (ASKED[4], evidence("listed", lambda trees: [*trees, trees[0]])),
    ],
)  # fmt: skip
def test_lie_about_restrictions_is_refuted(folder, tmp_path, asked, lie):
    document, data = trained(folder, "exact-numeric", test_share=0.25, **asked)
    lie(document)
    assert verdict_of(document, data, tmp_path) == "refuted"


@pytest.mark.parametrize(
    "asked",
    [ASKED[0], {"forbidden_pairs": "length + width"}, {"forbidden": "width"}, {"min_leaf": 9}, {"max_leaves": 3}],
)
def test_unrestricted_tree_is_refuted_as_best_restricted_one(folder, tmp_path, asked):
    """The file has the tree of fewest errors, which violates the restriction, but it claims its scope."""
    plain, data = trained(folder, "exact-numeric", test_share=0.25)
    document, _ = trained(folder, "exact-numeric", test_share=0.25, **asked)
    assert plain["certificate"]["objective"] > document["certificate"]["objective"]
    plain["parameters"] = document["parameters"]
    plain["certificate"]["scope"] = document["certificate"]["scope"]
    said = [f for f in findings(plain, data, tmp_path) if f.verdict == "refuted"]
    assert [f.claim.split()[0] for f in said] == list(asked)


def test_random_honest_files_with_optimal_trees_are_proved(tmp_path, count):
    """Several thresholds separate the rows of a node alike, so the same words may be listed more than once."""
    for seed in (3, 21, 41, *range(count)):
        table, labels, _, parameters = random_case(seed)
        _file(table, labels, parameters | {"optimal_trees": 1000}, tmp_path, "exact-numeric")
        said = verify(tmp_path / "model.json", tmp_path / "rows.csv")
        assert verdict(said) == "proved", (seed, [f for f in said if f.verdict not in ("recounted", "proved")])


@pytest.mark.parametrize("asked", [*ASKED[:2], *ASKED[7:10]])
def test_wish_beside_restrictions_is_proved_and_keeps_them(folder, tmp_path, asked):
    plain, data = trained(folder, "exact-numeric", **asked)
    table, labels, *_ = load(data, target="class")
    request = TrainRequest(table=table, labels=labels, method="exact-numeric", parameters={"depth": 2, **asked})
    session = WorkbenchSession(request)
    monitor = session.monitor()
    proof = tmp_path / "proof.jsonl.gz"
    result = session.result(session.complete(["ask root width <= 2.5"], monitor), monitor, proof)
    save(result.model, tmp_path / "model.json")
    said = verify(tmp_path / "model.json", data, proof)
    assert verdict(said) == "proved", [f for f in said if f.verdict not in ("recounted", "proved")]
    assert result.model.certificate["optimum"]["objective"] == pytest.approx(plain["certificate"]["objective"])
