"""Proofs of frontiers prove the fewest errors for each number of leaves, and no change proves a false bound."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from tests.trainer.check.proof.changes import page
from tests.trainer.check.proof.proofs_cases import mutations
from tests.trainer.check.proof.second_checker_cases import table
from trainer.check.proof.steps.steps import check_proof
from trainer.check.proof.subject import BadProof, ProofSpace
from trainer.check.recount import verify
from trainer.check.recount.search import small
from trainer.data.reader import load
from trainer.families.exact.proofs.frontier import frontier_proof
from trainer.families.exact.search.frontier import solve_frontier
from trainer.solver_common.binary_problem import BinaryProblem
from trainer.training.run import TrainRequest, save, train

Lines = list[dict[str, Any]]


def never() -> bool:
    return False


def fewest(space: ProofSpace, depth: int, most: int) -> list[int]:
    """Return the fewest errors of trees with at most 1, 2, … leaves, by plain recursion over everything."""

    @lru_cache(None)
    def best(rows: frozenset[int], left: int) -> tuple[int, ...]:
        chosen = sorted(rows)
        sizes = np.bincount(space.labels[chosen], space.weights[chosen], space.classes)
        least = [int(sizes.sum() - sizes.max())] * (1 << left)
        for q in np.flatnonzero(space.allowed).tolist() if left else ():
            yes = frozenset(i for i in chosen if space.X[i, q])
            no = rows - yes
            if all(side and space.weights[sorted(side)].sum() >= space.min_leaf for side in (yes, no)):
                one = best(no, left - 1)
                two = best(yes, left - 1)
                for a, x in enumerate(one):
                    for b, y in enumerate(two):
                        for t in range(a + b + 1, len(least)):
                            least[t] = min(least[t], x + y)
        return tuple(least)

    return list(best(frozenset(range(len(space.X))), depth))[:most]


@cache
def questions(seed: int) -> tuple[ProofSpace, Lines, list[int]]:
    """Return a random table, the proof of its frontier, and the frontier by brute force."""
    rng = np.random.default_rng(seed)
    depth = 2 + seed % 3 if seed < 20 else 5 + seed % 2
    m = int(rng.integers(3, 7))
    n = int(rng.integers(8, 26))
    classes = int(rng.integers(2, 4))
    X = rng.integers(0, 2, (n, m)).astype(np.uint8)
    X[:, rng.integers(m)] = X[:, 0] if seed % 4 else 1
    y = ((X.sum(axis=1) + (rng.random(n) < 0.4)) % classes).astype(np.int32)
    weights = rng.integers(1, 4, n).astype(np.int64) if seed % 2 else np.ones(n, np.int64)
    penalty = Fraction(int(rng.integers(0, 5)), 2)
    least = 1 + 2 * (seed % 5 == 0)
    most = int(rng.integers(1, 1 + (1 << depth)))
    allowed = (np.arange(m) != (seed % 8)).astype(np.uint8)
    points = solve_frontier(
        BinaryProblem(X, y, n_classes=classes, depth=depth, weights=weights, min_leaf=least, allowed=allowed),
        max_leaves=most,
    )
    errors = [p.bound for p in points]
    proof = frontier_proof(
        BinaryProblem(
            X, y, n_classes=classes, depth=depth, weights=weights, min_leaf=least, allowed=allowed, leaf_cost=penalty
        ),
        errors,
        most=most,
        stop=never,
    )
    assert proof is not None
    space = ProofSpace("questions", X > 0, y, weights, classes, depth, penalty, least, most, allowed > 0, None, "rows")
    header = {"format": "octweb-proof", "version": 4, "rows": "rows", "scale": 1, "goals": proof.goals}
    return space, [header, *proof.steps], fewest(space, depth, most)


def shown(space: ProofSpace, lines: Lines) -> tuple[int, ...] | None:
    try:
        return check_proof(iter(list(enumerate(lines))), space).errors
    except BadProof:
        return None


SEEDS = range(24)


@pytest.mark.parametrize("first", range(0, len(SEEDS), 12))
def test_the_whole_frontier_is_proved_and_nothing_better(first):
    for seed in SEEDS[first : first + 12]:
        space, lines, least = questions(seed)
        goals = lines[0]["goals"]
        assert goals == least[: len(goals)], seed
        assert set(least[len(goals) :]) <= {goals[-1]}
        assert shown(space, lines) == tuple(goals), seed
        cost = min(e + t * space.penalty for t, e in enumerate(least, 1))
        assert check_proof(iter(list(enumerate(lines))), space).cost == cost
        for t in range(len(goals)):
            more = [*goals[:t], goals[t] + 1, *goals[t + 1 :]]
            assert shown(space, [{**lines[0], "goals": more}, *lines[1:]]) is None, (seed, t)


def test_five_levels_of_more_than_twenty_questions_are_proved():
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, (40, 22)).astype(np.uint8)
    most = 4
    y = ((X[:, 0] ^ X[:, 1]) | (rng.random(40) < 0.2)).astype(np.int32)
    every = np.ones(22, np.uint8)
    points = solve_frontier(BinaryProblem(X, y, n_classes=2, depth=5, allowed=every), max_leaves=most)
    proof = frontier_proof(
        BinaryProblem(X, y, n_classes=2, depth=5, weights=None, min_leaf=1, allowed=every, leaf_cost=Fraction(0)),
        [p.bound for p in points],
        most=most,
        stop=never,
    )
    assert proof is not None
    assert proof.goals is not None
    space = ProofSpace(
        "questions", X > 0, y, np.ones(40, np.int64), 2, 5, Fraction(0), 1, most, every > 0, None, "rows"
    )
    header = {"format": "octweb-proof", "version": 4, "rows": "rows", "scale": 1, "goals": proof.goals}
    assert shown(space, [header, *proof.steps]) == tuple(p.errors for p in points)
    more = {**header, "goals": [goal + 1 for goal in proof.goals]}
    assert shown(space, [more, *proof.steps]) is None


@pytest.mark.slow
def test_no_change_makes_a_false_frontier_hold():
    tried = refused = 0
    for seed in (0, 1, 2, 3, 4, 6, 7):
        space, lines, least = questions(seed)
        for k, step in list(enumerate(lines))[1:][-3:]:
            for changed in (*mutations(step), {**step, "leaves": 1}, {**step, "leaves": 5}, None):
                own = [*lines[:k], *([] if changed is None else [changed]), *lines[k + 1 :]]
                found = shown(space, own)
                assert found is None or all(a <= b for a, b in zip(found, least, strict=False))
                t = tried % len(lines[0]["goals"])
                goals = [g + (i == t) for i, g in enumerate(lines[0]["goals"])]
                assert shown(space, [{**lines[0], "goals": goals}, *own[1:]]) is None
                tried = tried + 1
                refused = refused + (found is None)
    assert tried > refused > 0.2 * tried > 30


@pytest.mark.parametrize(
    "change",
    [
        {"version": 1}, {"version": 3}, {"version": True}, {"scale": 2}, {"goals": None}, {"goals": []}, {"goals": [1] * 99},
        {"goals": ["1"]}, {"goals": [1.0]}, {"goals": [True]}, {"goals": [-1]}, {"goals": 3}, {"format": "x"}, {"rows": "others"},
    ],
)  # fmt: skip
def test_invalid_headers_are_refused(change):
    space, lines, _ = questions(1)
    assert shown(space, [{**lines[0], **change}, *lines[1:]]) is None


TABLES: list[tuple[str, dict[str, Any]]] = [
    ("exact", {"depth": 2, "max_leaves": 4, "bins": 3}),
    ("exact", {"depth": 3, "max_leaves": 6, "bins": 3, "leaf_penalty": 0.02}),
    ("exact", {"depth": 3, "max_leaves": 8, "bins": 3, "min_leaf": 3, "leaf_penalty": 0.3}),
    ("exact", {"depth": 4, "max_leaves": 9, "bins": 2, "forbidden": "z", "class_weight": "balanced"}),
]


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(TABLES)))
def test_the_frontier_of_a_model_is_proved_by_both_checkers(place, tmp_path):
    method, parameters = TABLES[place]
    data = table(tmp_path, place)
    model = tmp_path / "model.json"
    proof = tmp_path / "proof.gz"
    rows, labels, _ = load(data, target="kind", ignore=[])
    save(train(TrainRequest(table=rows, labels=labels, method=method, parameters=parameters, proof=proof)).model, model)
    found = {f.claim: f.verdict for f in verify(model, data, proof)}
    assert found["bound"] == found["optimal"] == found["leaf-frontier"] == "proved"
    text = gzip.decompress(proof.read_bytes()).decode()
    lies = []
    head, *steps = map(json.loads, text.splitlines())
    for t in {0, 2, len(head["goals"]) - 1}:
        goals = [g + (i == t) for i, g in enumerate(head["goals"])]
        lies.append("\n".join(map(json.dumps, [{**head, "goals": goals}, *steps])))
    less = "\n".join(map(json.dumps, [{**head, "goals": [max(0, g - 1) for g in head["goals"]]}, *steps]))
    files = [(model.read_text(), own, data.read_text()) for own in (text, less, *lies)]
    assert page(files) == [True, *[False] * (len(lies) + 1)]
    (tmp_path / "less").write_text(less)
    verdicts = {f.claim: f.verdict for f in verify(model, data, tmp_path / "less")}
    assert verdicts["bound"] == "cannot be judged"
    (tmp_path / "lie").write_text(lies[-1])
    assert "refuted" in {f.verdict for f in verify(model, data, tmp_path / "lie")}


def test_a_frontier_that_claims_too_much_is_not_proved(tmp_path):
    method, parameters = TABLES[1]
    data = table(tmp_path, 3)
    model = tmp_path / "model.json"
    proof = tmp_path / "proof.gz"
    rows, labels, _ = load(data, target="kind", ignore=[])
    save(train(TrainRequest(table=rows, labels=labels, method=method, parameters=parameters, proof=proof)).model, model)
    document = json.loads(model.read_text())
    frontier = next(e for e in document["certificate"]["evidence"] if e["kind"] == "leaf-frontier")
    assert len(frontier["points"]) > 2
    del frontier["points"][-2]  # the file now claims that no tree of this size is better than the next smaller one
    model.write_text(json.dumps(document))
    assert page([(model.read_text(), gzip.decompress(proof.read_bytes()).decode(), data.read_text())]) == [False]
    assert "proved" not in {f.verdict for f in verify(model, data, proof) if f.claim == "leaf-frontier"}


@cache
def deep() -> tuple[dict[str, Any], str, bytes]:
    """Return a model with a frontier, its rows, and its proof."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        data = table(folder, 1)
        model = folder / "model.json"
        proof = folder / "proof.gz"
        rows, labels, _ = load(data, target="kind", ignore=[])
        parameters = {"depth": 4, "max_leaves": 7, "bins": 3}
        request = TrainRequest(table=rows, labels=labels, method="exact", parameters=parameters, proof=proof)
        save(train(request).model, model)
        return json.loads(model.read_text()), data.read_text(), proof.read_bytes()


def leaf_frontier(document: dict[str, Any]) -> dict[str, Any]:
    return next(e for e in document["certificate"]["evidence"] if e["kind"] == "leaf-frontier")


def said(document: dict[str, Any], data: str, proof: bytes, folder: Path) -> str:
    """Return the verdict on the frontier, with the proof."""
    for name, text in (("model.json", json.dumps(document)), ("rows.csv", data)):
        (folder / name).write_text(text)
    (folder / "proof.gz").write_bytes(proof)
    findings = verify(folder / "model.json", folder / "rows.csv", folder / "proof.gz")
    return next(f.verdict for f in findings if f.claim == "leaf-frontier")


def worse_twin(points: list[dict[str, Any]]) -> None:
    """Insert before a true point one of the same size that states fewer rows as the most."""
    first = {k: v for k, v in points[1].items() if k != "tree"}
    points.insert(1, first | {"correct": points[1]["correct"] - 1, "bound": points[1]["bound"] - 1})


def more_rows(points: list[dict[str, Any]]) -> None:
    points[-1] |= {"correct": points[-1]["correct"] + 1, "bound": points[-1]["bound"] + 1}


def labels_changed(points: list[dict[str, Any]]) -> None:
    leaves = [v for v in points[-1]["tree"] if "class" in v]
    leaves[0]["class"] = next(v["class"] for v in leaves if v["class"] != leaves[0]["class"])


LIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a worse point of the same size": lambda own: worse_twin(own["points"]),
    "sizes beyond the largest": lambda own: own.update(most=own["points"][-1]["leaves"] - 1),
    "one row more": lambda own: more_rows(own["points"]),
    "one row more, and no tree": lambda own: (more_rows(own["points"]), own["points"][-1].pop("tree")),
    "points in another order": lambda own: own["points"].reverse(),
    "a size that was settled called open": lambda own: own.update(
        unsettled=[{"leaves": own["points"][0]["leaves"], "bound": 0}]
    ),
    "an open size twice": lambda own: own.update(unsettled=[{"leaves": own["most"], "bound": b} for b in (0, 10**6)]),
    "a size between two others": lambda own: (
        own["points"].insert(
            1, {**own["points"][0], "leaves": 1.5, "correct": (k := own["points"][0]["correct"] + 1), "bound": k}
        ),
        own["points"][1].pop("tree"),
    ),
    "no leaf at all": lambda own: own["points"].insert(0, {"leaves": 0, "correct": 0, "bound": 0, "proved": True}),
    "other labels": lambda own: labels_changed(own["points"]),
    "a deeper tree": lambda own: own["points"][0].update(leaves=own["points"][1]["leaves"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("lie", LIES)
def test_false_frontier_is_not_proved_by_true_proof(lie, tmp_path):
    document, data, proof = deep()
    assert said(document, data, proof, tmp_path) == "proved"
    changed = json.loads(json.dumps(document))
    LIES[lie](leaf_frontier(changed))
    assert said(changed, data, proof, tmp_path) == "refuted"


DISORDER = (
    "a worse point of the same size",
    "sizes beyond the largest",
    "points in another order",
    "an open size twice",
    "no leaf at all",
)


def test_the_page_refuses_a_frontier_out_of_order():
    """The page does not check the trees of the frontier, and says so."""
    document, data, proof = deep()
    texts = [json.dumps(document)]
    for lie in DISORDER:
        changed = json.loads(texts[0])
        LIES[lie](leaf_frontier(changed))
        texts.append(json.dumps(changed))
    steps = gzip.decompress(proof).decode()
    assert page([(text, steps, data) for text in texts]) == [True, *[False] * len(DISORDER)]


def test_frontier_without_trees_is_proved_only_by_search(tmp_path, monkeypatch):
    document, data, proof = json.loads(json.dumps(deep()[0])), *deep()[1:]
    for point in leaf_frontier(document)["points"]:
        del point["tree"]
    assert said(document, data, proof, tmp_path) == "proved"
    monkeypatch.setattr(small, "VISITS", 0)  # as if the space were too large for a search
    assert said(document, data, proof, tmp_path) == "cannot be judged"
    more_rows(leaf_frontier(document)["points"])
    assert said(document, data, proof, tmp_path) == "cannot be judged"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_both_checkers_prove_frontiers_of_planes(seed, tmp_path):
    draw = np.random.default_rng(seed)
    rows = np.column_stack([draw.integers(0, 6, (14, 2)) / 10, draw.integers(0, 2 + seed % 2, 14)])
    data, model, proof = (tmp_path / name for name in ("rows.csv", "model.json", "proof.gz"))
    data.write_text("x,y,class\n" + "".join(f"{x},{y},k{k:.0f}\n" for x, y, k in rows))
    whole, labels, *_ = load(data, target="class")
    parameters = {"depth": 1 + seed % 2, "pareto": True, "first_trees": "cart", "search_seconds": 1, "time_limit": 8}
    parameters |= {"threads": 1, "leaf_penalty": 0.05 * (seed % 2)}
    request = TrainRequest(table=whole, labels=labels, method="cut-h", parameters=parameters, proof=proof)
    save(train(request).model, model)
    found = {f.claim: f.verdict for f in verify(model, data, proof)}
    assert found["bound"] == found["leaf-frontier"] == found["coefficient-frontier"] == "proved"
    head, *steps = map(json.loads, gzip.decompress(proof.read_bytes()).decode().splitlines())
    lies = [
        [{**head, "goals": [g + (i == t) for i, g in enumerate(head["goals"])]}, *steps]
        for t in range(len(head["goals"]))
    ]
    texts = ["\n".join(map(json.dumps, own)) for own in ([head, *steps], [head, *steps[:-1]], *lies)]
    said = page([(model.read_text(), text, data.read_text()) for text in texts])
    for text, holds in zip(texts, said, strict=True):
        (tmp_path / "changed").write_text(text)
        again = {f.claim: f.verdict for f in verify(model, data, tmp_path / "changed")}
        assert holds == (again.get("proof") != "refuted" and again["leaf-frontier"] == "proved")
    assert said[0]
    assert not any(said[2:])


@pytest.mark.parametrize("seed", [110, 115])
def test_leaf_limit_above_number_of_groups_is_proved(seed):
    """No tree has so many leaves, but a proof that divides them holds."""
    space, lines, least = questions(seed)
    groups = len(np.unique(space.X, axis=0))
    assert any(groups <= step.get("leaves", 0) < 1 << step["height"] for step in lines[1:])
    goals = lines[0]["goals"]
    assert goals == least[: len(goals)]
    assert shown(space, lines) == tuple(goals)
