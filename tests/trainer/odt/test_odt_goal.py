"""Sensitivity, specificity, class weights and the frontier of odt equal brute force over a topology."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.odt.odt_cases import problem_of
from tests.trainer.odt.odt_goal_cases import reachable, reached, two_classes
from trainer.certificate import Limits, Status
from trainer.check.recount import verify
from trainer.errors import InfeasibleError, ParameterError
from trainer.families.odt import method as odt
from trainer.families.odt.goals import steps
from trainer.families.odt.grouping import predict_labels
from trainer.families.odt.pareto import RateFrontierSearch
from trainer.families.odt.topology import parse
from trainer.methods.monitor import Monitor
from trainer.table import ColumnKind
from trainer.training.run import TrainRequest, fit, save, train

TOPOLOGIES = ("depth-1", "depth-2", "depth-2.5", "[.[..]]", "depth-3")


def solved(problem, **settings):
    values = odt.METHOD.settings({"bins": 60, "positive": "k1"} | settings)
    return fit(odt.METHOD, problem, values, Monitor())


@seeds(60)
def test_the_frontier_is_that_of_all_trees(seed):
    problem = two_classes(seed)
    topology = TOPOLOGIES[seed % 5]
    card = (0, 0, 1)[seed % 3]
    expected = reachable(problem, parse(topology), card)
    tree, certificate, _ = solved(problem, topology=topology, frontier=True, max_card=card)
    assert certificate.status is Status.OPTIMAL
    kept = certificate.evidence[0]
    assert [tuple(p) for p in kept["pairs"]] == [(tp, tn, tn) for tp, tn in expected]
    assert sum(reached(problem, tree)) == max(tp + tn for tp, tn in expected)


@pytest.mark.slow
@seeds(100)
@pytest.mark.parametrize("share", ["sensitivity", "specificity"])
def test_a_required_share_is_kept_and_the_other_maximised(seed, share):
    problem = two_classes(500 + seed)
    topology = TOPOLOGIES[seed % 5]
    card = (0, 0, 1)[seed % 3]
    least = (0, 0.3, 0.5, 0.75, 0.9, 1)[seed % 6]
    tree, certificate, _ = solved(problem, topology=topology, max_card=card, **{share: least})
    pairs = reachable(problem, parse(topology), card)
    rows = [int((problem.y == 1).sum()), int((problem.y == 0).sum())]
    own = 0 if share == "sensitivity" else 1
    best = max(pair[1 - own] for pair in pairs if pair[own] >= Fraction(str(least)) * rows[own])
    found = reached(problem, tree)
    assert certificate.status is Status.OPTIMAL
    assert found[own] >= Fraction(str(least)) * rows[own]
    assert found[1 - own] == best
    assert certificate.objective == pytest.approx(best / rows[1 - own])


@seeds(30)
def test_both_shares_or_the_best_that_can_be_reached(seed):
    problem = two_classes(900 + seed)
    topology = TOPOLOGIES[seed % 4]
    pairs = reachable(problem, parse(topology), 0)
    positives = int((problem.y == 1).sum())
    negatives = int((problem.y == 0).sum())
    s = Fraction(1 + seed % 4, 4)
    t = Fraction(1 + seed % 3, 3).limit_denominator(100)
    least_s = float(s)
    least_t = round(float(t), 6)
    kept = [(a, b) for a, b in pairs if a >= s * positives and b >= Fraction(str(least_t)) * negatives]
    settings = {"topology": topology, "sensitivity": least_s, "specificity": least_t}
    if kept:
        tree, certificate, _ = solved(problem, **settings)
        assert certificate.proved_optimal
        assert sum(reached(problem, tree)) == max(a + b for a, b in kept)
    else:
        with pytest.raises(InfeasibleError, match=r"no tree reaches a specificity of .*: the best is") as caught:
            solved(problem, **settings)
        most = Fraction(max(b for a, b in pairs if a >= s * positives), negatives)
        assert caught.value.best == pytest.approx(float(most))
        said = Fraction(str(caught.value).split("the best is ")[1].split(". ")[0])
        assert most - Fraction(1, 10**4) < said <= most  # the stated share is rounded down, so that it can be required


@pytest.mark.slow
def test_stopped_second_search_keeps_tree_of_first_search(monkeypatch):
    """Time may run out just after it is known that both shares go together."""
    solve = RateFrontierSearch.solve
    checked = 0
    for seed in range(60):
        problem = two_classes(2000 + seed)
        topology = ("depth-2", "depth-2.5", "[.[..]]", "depth-3")[seed % 4]
        rows = [int((problem.y == 1).sum()), int((problem.y == 0).sum())]
        shares = (0.5, 0.75, 1)[seed % 3], (0.4, 0.5)[seed % 2]
        least = [Fraction(str(s)) * n for s, n in zip(shares, rows, strict=True)]
        kept = [p for p in reachable(problem, parse(topology), 0) if p[0] >= least[0] and p[1] >= least[1]]
        if not kept:
            continue
        monitor = Monitor()

        def stops_after(search, monitor=monitor):
            solve(search)
            monitor.stop(Status.TIME_LIMIT)

        monkeypatch.setattr(RateFrontierSearch, "solve", stops_after)
        values = odt.METHOD.settings(
            {"topology": topology, "positive": "k1", "sensitivity": shares[0], "specificity": shares[1]}
        )
        tree, certificate, _ = fit(odt.METHOD, problem, values, monitor)
        own = reached(problem, tree)
        assert own[0] >= least[0]
        assert own[1] >= least[1]
        best = max(a + b for a, b in kept) / sum(rows)
        assert certificate.bound >= best - 1e-9
        assert not certificate.proved_optimal or certificate.objective == pytest.approx(best)
        checked += 1
    assert checked > 30


@pytest.mark.parametrize("weight", ["0", "0.5", "2", "3.7", "balanced"])
@seeds(20)
def test_a_negative_weight_counts_correct_negatives(weight, seed):
    problem = two_classes(1300 + seed)
    topology = TOPOLOGIES[seed % 5]
    positives = int((problem.y == 1).sum())
    negatives = int((problem.y == 0).sum())
    C = Fraction(positives, negatives) if weight == "balanced" else Fraction(weight)
    best = max(tp + C * tn for tp, tn in reachable(problem, parse(topology), 0))
    tree, certificate, _ = solved(problem, topology=topology, negative_weight=weight)
    tp, tn = reached(problem, tree)
    assert tp + C * tn == best
    assert certificate.proved_optimal
    assert certificate.objective == pytest.approx(float(best / (positives + C * negatives)))


def test_the_first_class_may_be_the_positive_one():
    problem = two_classes(3)
    mirrored = problem_of(
        [c.values for c in problem.table.columns],
        [1 - int(k) for k in problem.y],
        [c.kind for c in problem.table.columns],
    )
    one, _, _ = solved(problem, sensitivity=0.8)
    two, _, _ = solved(mirrored, sensitivity=0.8, positive="k0")
    assert reached(problem, one) == reached(mirrored, two)[::-1]


def test_a_stopped_search_keeps_the_required_share_and_a_bound():
    rng = np.random.default_rng(5)
    problem = problem_of(
        [rng.integers(0, 12, 400) for _ in range(10)], list(rng.integers(0, 2, 400)), [ColumnKind.CATEGORICAL] * 10
    )
    values = odt.METHOD.settings({"depth": 3, "sensitivity": 0.9, "positive": "k1"})
    tree, certificate, _ = fit(odt.METHOD, problem, values, Monitor(Limits(time=0.5)))
    assert certificate.status is Status.TIME_LIMIT
    assert reached(problem, tree)[0] >= 0.9 * (problem.y == 1).sum()
    assert certificate.bound > certificate.objective


class _Patience(Monitor):
    """Monitor that stops a run after this number of checks."""

    questions = 0

    def stopped(self):
        self.questions -= 1
        if self.questions < 0:
            self.stop(Status.TIME_LIMIT)
        return super().stopped()


@pytest.mark.slow
@pytest.mark.parametrize("card", [0, 1])
def test_stopped_frontier_states_only_proved_points(card):
    """Listed pairs are Pareto-optimal, no tree exceeds the bounds, and "finished" means that no pair is missing."""
    stopped = settled = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(7, 12))
        columns = [rng.integers(0, int(rng.integers(2, 6)), n) for _ in range(2)]
        problem = problem_of(
            columns, [0, 1, *(int(k) for k in rng.integers(0, 2, n - 2))], [ColumnKind.CATEGORICAL] * 2
        )
        topology = ("depth-2", "depth-2.5", "[.[..]]", "depth-3")[seed % 4]
        monitor = _Patience()
        monitor.questions = (3, 6, 10, 20, 40, 80)[seed // 4 % 6]
        values = odt.METHOD.settings({"topology": topology, "positive": "k1", "frontier": True, "max_card": card})
        _, certificate, _ = fit(odt.METHOD, problem, values, monitor)
        kept = certificate.evidence[0]
        truth = reachable(problem, parse(topology), card)
        for (tp, tn, bound), proved in zip(kept["pairs"], kept["proved"], strict=True):
            best = max(b for a, b in truth if a >= tp)
            assert tn <= best <= bound, f"seed {seed}"
            assert not proved or (tp, tn) in truth, f"seed {seed}"
            settled += proved and not kept["finished"]
        if kept["finished"]:
            assert [(a, b) for a, b, _ in kept["pairs"]] == truth, f"seed {seed}"
            assert all(kept["proved"])
            assert (kept["status"], kept["bounds"]) == ("optimal", [])
            continue
        stopped += 1
        assert kept["status"] == "time_limit"
        below = -1
        for t, top in kept["bounds"]:
            assert max((b for a, b in truth if a > below), default=0) <= top, f"seed {seed}"
            below = t
        assert below == kept["positives"]
    assert stopped > 30
    assert settled > 10


@pytest.mark.parametrize("limit", [1, 3, 7, 1000])
def test_joined_steps_of_a_bound_keep_the_highest(limit):
    for seed in range(100):
        rng = np.random.default_rng(seed)
        most = -np.sort(-rng.integers(0, 12, int(rng.integers(1, 25))))
        kept = steps(most, limit)
        said = np.concatenate([[b] * (t - s) for (s, _), (t, b) in zip([[-1, 0], *kept], kept, strict=False)])
        assert len(said) == len(most)
        assert (said >= most).all()
        assert limit < 1000 or (said == most).all()


def test_incumbent_tree_is_reported_during_frontier_search():
    problem = two_classes(8)
    shown = []
    values = odt.METHOD.settings({"topology": "depth-2", "frontier": True, "positive": "k1"})
    fit(odt.METHOD, problem, values, Monitor(sink=lambda progress, draft: shown.append((progress, draft))))
    trees = [(progress, draft) for progress, draft in shown if progress.phase == "frontier" and draft is not None]
    assert trees
    for progress, draft in trees:
        right = predict_labels(draft, problem.matrix) == problem.y
        assert right.mean() == pytest.approx(progress.incumbent)


@pytest.mark.parametrize(
    ("asked", "name"),
    [({"positive": "k9", "sensitivity": 0.5}, "positive"), ({"negative_weight": "much"}, "negative_weight"), ({"negative_weight": "1e-13"}, "negative_weight"),
     ({"negative_weight": "2", "sensitivity": 0.5}, "negative_weight")],
)  # fmt: skip
def test_a_bad_goal_is_refused(asked, name):
    with pytest.raises(ParameterError) as caught:
        solved(two_classes(1), **asked)
    assert name in caught.value.errors


def test_three_classes_have_no_sensitivity():
    problem = problem_of([[0, 1, 2, 0]], [0, 1, 2, 1], [ColumnKind.CATEGORICAL])
    with pytest.raises(ParameterError):
        solved(problem, sensitivity=0.5)


def _write(problem, path):
    """Write the rows of a problem to a file."""
    names = [c.schema.name for c in problem.table.columns]
    lines = [",".join([*names, "y"])]
    for i, label in enumerate(problem.y):
        cells = [
            c.schema.categories[int(c.values[i])] if c.schema.categories else repr(c.values[i])
            for c in problem.table.columns
        ]
        lines.append(",".join([*cells, problem.labels.classes[label]]))
    path.write_text("\n".join(lines) + "\n")


def test_the_checker_recounts_the_goal(tmp_path):
    problem = two_classes(8)
    result = train(
        TrainRequest(
            table=problem.table,
            labels=problem.labels,
            method="odt",
            parameters={"sensitivity": 0.9, "topology": "depth-2.5", "positive": "k1"},
        )
    )
    save(result.model, tmp_path / "model.json")
    _write(problem, tmp_path / "rows.csv")
    found = {f.claim: f.verdict for f in verify(tmp_path / "model.json", tmp_path / "rows.csv")}
    assert found["objective"] == found["required shares"] == found["structure"] == "recounted"


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["search", "scip"])
def test_every_stored_subset_keeps_the_limit(tmp_path, solver):
    """Absent categories count towards the limit, too, and the rows still go to the same side."""
    for seed in range(12 if solver == "search" else 4):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(10, 25))
        card = 1 + seed % 2
        columns = [rng.integers(0, 8, n) for _ in range(2)]
        problem = problem_of(
            columns, [0, 1, *(int(k) for k in rng.integers(0, 2, n - 2))], [ColumnKind.CATEGORICAL] * 2
        )
        goals = ({}, {"sensitivity": 0.8}, {"negative_weight": "2"}) + ({"frontier": True},) * (solver == "search")
        asked = goals[seed % len(goals)] | {"max_card": card, "positive": "k1", "solver": solver}
        asked["topology"] = (
            ("depth-2.5", "[[..][.[..]]]")[seed % 2] if solver == "scip" else ("depth-3", "imbalanced")[seed // 4 % 2]
        )
        result = train(TrainRequest(table=problem.table, labels=problem.labels, method="odt", parameters=asked))
        tree = result.model.tree
        for node in tree.nodes:
            if node.split is not None:
                size = len(tree.schema[node.split.feature].categories)
                few = len(node.split.codes)
                assert min(few, size - few) <= card, f"seed {seed}"
        if asked.keys() == goals[0].keys() | {"max_card", "positive", "solver", "topology"}:
            assert problem.correct(tree) == result.certificate.correct
        if seed % 8 == 0:
            save(result.model, tmp_path / "model.json")
            _write(problem, tmp_path / "rows.csv")
            found = {f.claim: f.verdict for f in verify(tmp_path / "model.json", tmp_path / "rows.csv")}
            assert found["max_card"] == found["objective"] == "recounted"


def test_the_checker_refutes_a_larger_subset(tmp_path):
    problem = problem_of([[0, 1, 2, 3, 4, 5] * 2], [0, 1, 0, 1, 0, 1] * 2, [ColumnKind.CATEGORICAL])
    result = train(
        TrainRequest(table=problem.table, labels=problem.labels, method="odt", parameters={"depth": 1, "max_card": 3})
    )
    save(result.model, tmp_path / "model.json")
    _write(problem, tmp_path / "rows.csv")
    changed = (tmp_path / "model.json").read_text().replace('"max_card": 3', '"max_card": 2')
    (tmp_path / "changed.json").write_text(changed)
    for name, verdict in (("model", "recounted"), ("changed", "refuted")):
        found = {f.claim: f.verdict for f in verify(tmp_path / f"{name}.json", tmp_path / "rows.csv")}
        assert found["max_card"] == verdict
