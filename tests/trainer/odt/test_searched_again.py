"""The checker's own search for `odt`, without proof and subset list, equals brute force."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.odt.odt_cases import brute
from tests.trainer.odt.odt_goal_cases import reachable
from tests.trainer.odt.options import TEXTS, repeated, table
from trainer.check.proof.space.space import topology_of
from trainer.check.recount import verdict, verify
from trainer.check.recount.claims import check_bound
from trainer.check.recount.search.assigned import GroupedRows
from trainer.check.recount.search.exhaustive_search import SearchTooLarge
from trainer.check.recount.search.fronts import TopologyFronts
from trainer.check.recount.search.subsets import Subsets
from trainer.check.recount.table.rows import load as rows_of
from trainer.data.problem import Problem
from trainer.data.reader import load
from trainer.errors import TrainerError
from trainer.families.odt.topology import NAMED, parse
from trainer.table import ColumnKind
from trainer.training.run import TrainRequest, save, train

SHAPES = (*NAMED, *TEXTS, "[[[[..].].].]", "[[..].]")
MOST = 1e9


def shape_of(text: str):
    return topology_of({"method": "odt", "parameters": {"topology": text}, "certificate": {}})


def posed(problem: Problem):
    """Return the columns and the weights of the classes as the searches take them."""
    columns = [
        (np.unique(c.values, return_inverse=True)[1].reshape(-1), c.kind is ColumnKind.NUMERIC)
        for c in problem.table.columns
    ]
    sizes = np.zeros((len(problem.y), problem.n_classes), np.int64)
    sizes[np.arange(len(problem.y)), problem.y] = problem.row_weights
    return columns, sizes


def case(seed: int, classes: int):
    """Return a random table, a topology, and the largest subset."""
    problem = table(seed, classes, seed % 5 == 0, seed % 3 == 0)
    return problem, SHAPES[seed % len(SHAPES)], (0, 0, 1, 2)[seed // 7 % 4]


@seeds(210)
def test_the_least_errors_are_those_of_brute_force(seed):
    problem, text, card = case(seed, 2 + seed // 2 % 2)
    columns, sizes = posed(problem)
    least = int(sizes.sum()) - brute(repeated(problem), parse(text), card)
    for limit in (least, least + 1, int(sizes.sum()) + 1):
        assert Subsets(columns, sizes, card, MOST).least(shape_of(text), limit) == least
    assert Subsets(columns, sizes, card, MOST).least(shape_of(text), least - 1) == least - 1


@seeds(210)
def test_fronts_are_those_of_brute_force(seed):
    problem, text, card = case(seed, 2)
    columns, sizes = posed(problem)
    negatives, positives = sizes.sum(axis=0).tolist()
    pairs = reachable(repeated(problem), parse(text), card)
    cap = positives // (1 + seed % 2)
    front = TopologyFronts(columns, sizes, card, MOST, cap).front(shape_of(text))
    assert front.tolist() == [negatives - max(tn for tp, tn in pairs if positives - tp <= t) for t in range(cap + 1)]


@pytest.mark.slow
@seeds(120)
def test_trees_below_the_target_are_not_searched(seed):
    problem, text, card = case(seed, 2)
    columns, sizes = posed(problem)
    positives = int(sizes[:, 1].sum())
    whole = TopologyFronts(columns, sizes, card, MOST, positives).front(shape_of(text))
    target = np.random.default_rng(seed).integers(0, int(sizes.sum()), len(whole))
    found = TopologyFronts(columns, sizes, card, MOST, positives).front(shape_of(text), target)
    assert found.tolist() == np.minimum(whole, target).tolist()


def test_long_search_ends_at_its_limit():
    problem, *_ = case(0, 2)
    columns, sizes = posed(problem)
    with pytest.raises(SearchTooLarge):
        Subsets(columns, sizes, 0, 10).least(shape_of("depth-3"), 100)
    with pytest.raises(SearchTooLarge):
        TopologyFronts(columns, sizes, 0, 10, 100).front(shape_of("depth-3"))
    with pytest.raises(SearchTooLarge):
        GroupedRows(columns, sizes, 0, 10).spend(11)


# The tests below check files.


def trained(folder, seed, categories=(4, 3), n=40, classes=2, **parameters):
    """Return model, proof and file of a random table with columns of these numbers of categories, and a numeric one."""
    r = np.random.default_rng(seed)
    columns = [r.integers(0, k, n) for k in categories]
    columns = [np.where(np.arange(n) < k, np.arange(n) % k, c) for c, k in zip(columns, categories, strict=True)]
    numbers = r.integers(0, 6, n)
    noise = r.random(n) < 0.25
    answers = (sum(c % 2 for c in columns) + (numbers > 3) + noise) % classes
    names = [f"c{j}" for j in range(len(columns))]
    cells = [[f"v{c[i]:02}" for c in columns] + [f"{numbers[i] / 2}", f"k{answers[i]}"] for i in range(n)]
    data = folder / "rows.csv"
    model = folder / "model.json"
    proof = folder / "proof.gz"
    data.write_text("\n".join(map(",".join, [[*names, "number", "class"], *cells])) + "\n")
    loaded, labels, *_ = load(data, target="class", kinds=dict.fromkeys(names, "categorical"))
    asked = {"depth": 2, "bins": 3} | parameters
    request = TrainRequest(table=loaded, labels=labels, method="odt", parameters=asked, proof=proof)
    result = train(replace(request, test_share=0, folds=0))
    save(result.model, model)
    return model, proof if proof.exists() else None, data, result


MANY = (11, 12)  # numbers of categories; they have 1,023 and 2,047 subsets
CLAIMS = [
    {"categories": MANY, "depth": 1},
    {"categories": MANY},
    {"categories": MANY, "depth": 3, "classes": 3},
    {"categories": MANY, "max_card": 2},
    {"categories": MANY, "sensitivity": 0.8},
    {"categories": MANY, "specificity": 0.7, "max_card": 3},
    {"categories": MANY, "negative_weight": "1/3"},
    {"categories": MANY, "frontier": True, "select": "cart"},
    {"topology": "[[[[[..].].].].]"},
    {"topology": "[[[[[..].].].].]", "classes": 3},
    {"topology": "[[[[..][..]][..]][[[..][..]].]]"},
    {"topology": "depth-2.5", "sensitivity": 0.8},
    {"topology": "depth-2.5", "specificity": 0.8, "frontier": True},
    {"topology": "[[..].]", "sensitivity": 0.5, "specificity": 0.5},
    {"topology": "imbalanced", "negative_weight": "balanced", "positive": "k0"},
    {"topology": "auto", "negative_weight": "3"},
    {"topology": "imbalanced", "categories": (8, 3)},
]


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_honest_files_are_proved_and_lower_bounds_are_refuted(tmp_path, claim):
    for seed in range(2):
        try:
            model, proof, data, result = trained(tmp_path, seed, **claim)
        except TrainerError:
            assert "sensitivity" in claim  # no tree reaches the required sensitivity
            continue
        assert result.certificate.proved_optimal
        findings = verify(model, data, proof)
        assert verdict(findings) == "proved", findings
        document = json.loads(model.read_text())
        lower = float(document["certificate"]["bound"]) - 1e-6
        document["certificate"] |= {"bound": lower, "objective": lower}
        (said,) = check_bound(document, rows_of(data, document).training)
        assert (said.verdict, "which is better" in said.detail) == ("refuted", True), said


def test_frontier_of_required_share_alone_is_not_complete(tmp_path):
    model, _, data, _ = trained(tmp_path, 3, sensitivity=0.8)
    document = json.loads(model.read_text())
    whole, _, _, _ = trained(tmp_path, 3, frontier=True)
    own = json.loads(whole.read_text())["certificate"]["evidence"][0]
    least = 0.8 * own["positives"]
    part = own | {
        "pairs": [p for p in own["pairs"] if p[0] >= least],
        "proved": [True for p in own["pairs"] if p[0] >= least],
    }
    assert len(part["pairs"]) < len(own["pairs"])
    for evidence, verdict_ in ((own, "proved"), (part, "refuted")):
        document["certificate"]["evidence"] = [evidence]
        model.write_text(json.dumps(document))
        assert next(f for f in verify(model, data) if f.claim == "frontier").verdict == verdict_
