"""The mixed-integer methods from table to certificate: constraints, infeasibility, limits, evidence, solvers.

The oracle lists all labelled trees over the encoded questions and judges each by its predictions. It shares no code
with the constraint objects.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from trainer.certificate import Status
from trainer.data.encoding import Scheme, encode_binary
from trainer.errors import InfeasibleError, ParameterError, SolverError
from trainer.goal import lowered_recalls_words
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table, numeric_table
from trainer.training.run import TrainRequest, TrainResult, train

N = 36
BINS = 3
PENALTY = Fraction(1, 50)
LENGTH, WEIGHT, SEX = range(3)
FLOW = ("flowoct", "bendoct", "bendoct-accelerated")


@cache
def sample() -> tuple[Table, Labels]:
    """Return two numeric columns and a binary one.

    The class rises with the length and, less clearly, falls with the weight.
    """
    r = np.random.default_rng(5)
    values = [r.normal(size=N).round(1), r.normal(size=N).round(1), r.integers(0, 2, N).astype(float)]
    schema = [
        ColumnSchema(name="length", kind=ColumnKind.NUMERIC),
        ColumnSchema(name="weight", kind=ColumnKind.NUMERIC),
        ColumnSchema(name="sex", kind=ColumnKind.BINARY),
    ]
    codes = (values[LENGTH] + 0.8 * values[SEX] - 0.5 * values[WEIGHT] + 0.4 * r.normal(size=N) > 0.1).astype(np.int32)
    columns = tuple(Column(schema=s, cells=v) for s, v in zip(schema, values, strict=True))
    return Table(columns=columns, row_numbers=np.arange(N)), Labels(name="y", classes=("no", "yes"), codes=codes)


def run(method: str, **parameters: object) -> TrainResult:
    table, labels = sample()
    settings = {"depth": 2, "bins": BINS, **parameters}
    if method != "binoct":
        settings = {"leaf_penalty": float(PENALTY)} | settings
    return train(TrainRequest(table=table, labels=labels, method=method, parameters=settings))


Shape = tuple | int  # a class, or (column of the split, subtree for 0, subtree for 1)


@cache
def judged(bins: int = BINS) -> list[tuple[Shape, np.ndarray]]:
    """Return every labelled tree of depth 2 with its predictions."""
    encoding = encode_binary(sample()[0], Scheme.QUANTILE_THRESHOLDS, bins, np.ones(N, np.int64))
    questions = list(zip((f.column for f in encoding.features), encoding.bits(sample()[0]).T, strict=True))
    stumps: list[tuple[Shape, np.ndarray]] = [(k, np.full(N, k)) for k in (0, 1)]
    shallow = [
        *stumps,
        *(
            ((column, a, b), np.where(bits, q, p))
            for column, bits in questions
            for (a, p), (b, q) in itertools.product(stumps, repeat=2)
        ),
    ]
    return [
        *stumps,
        *(
            ((column, a, b), np.where(bits, q, p))
            for column, bits in questions
            for (a, p), (b, q) in itertools.product(shallow, repeat=2)
        ),
    ]


def leaves(shape: Shape) -> list[int]:
    return [shape] if isinstance(shape, int) else [*leaves(shape[1]), *leaves(shape[2])]


def paths(shape: Shape) -> list[set[int]]:
    """Return the tested columns on each path to a leaf."""
    if isinstance(shape, int):
        return [set()]
    return [{shape[0]} | rest for side in shape[1:] for rest in paths(side)]


def monotone(shape: Shape, column: int, sign: int) -> bool:
    """Return whether the tree is monotone in the column.

    No class on its low side may be higher (sign 1) or lower (-1) than one on the opposite side.
    """
    if isinstance(shape, int):
        return True
    low, high = (leaves(side)[:: 1 if sign > 0 else -1] for side in shape[1:])
    kept = shape[0] != column or max(sign * k for k in low) <= min(sign * k for k in high)
    return kept and all(monotone(side, column, sign) for side in shape[1:])


def recall(predicted: np.ndarray, k: int) -> Fraction:
    own = sample()[1].codes == k
    return Fraction(int((predicted[own] == k).sum()), int(own.sum()))


def rate_gap(predicted: np.ndarray, only_yes: bool) -> Fraction:
    sex = sample()[0].columns[SEX].values
    counted = (sample()[1].codes == 1) | (not only_yes)
    rates = [
        Fraction(int(predicted[counted & (sex == g)].sum()), int((counted & (sex == g)).sum())) for g in (0.0, 1.0)
    ]
    return abs(rates[0] - rates[1])


FAIR = {"fairness_column": "sex", "fairness_class": "yes"}
CONSTRAINTS = {
    "none": ({}, lambda s, p: True),
    "leaves": ({"max_leaves": 2}, lambda s, p: len(leaves(s)) <= 2),
    "columns": ({"max_columns": 1}, lambda s, p: len(set().union(*paths(s))) <= 1),
    "recall": ({"recall": "yes: 0.85; no: 0.6"}, lambda s, p: recall(p, 1) >= 0.85 and recall(p, 0) >= 0.6),
    "specificity": ({"recall": "no: 1"}, lambda s, p: recall(p, 0) == 1),
    "parity": (
        {"fairness": "parity", "fairness_delta": 0.1, **FAIR},
        lambda s, p: rate_gap(p, only_yes=False) <= Fraction(1, 10),
    ),
    "opportunity": (
        {"fairness": "opportunity", "fairness_delta": 0.05, **FAIR},
        lambda s, p: rate_gap(p, only_yes=True) <= Fraction(1, 20),
    ),
    "pairs": (
        {"forbidden_pairs": "length + sex"},
        lambda s, p: not any({LENGTH, SEX} <= path for path in paths(s)),
    ),
    "rising": ({"monotone": "weight up; sex down"}, lambda s, p: monotone(s, WEIGHT, 1) and monotone(s, SEX, -1)),
    "falling": ({"monotone": "length down"}, lambda s, p: monotone(s, LENGTH, -1)),
    "together": (
        {"max_leaves": 3, "recall": "yes: 0.8", "monotone": "length up", "fairness": "parity", "fairness_delta": 0.3, **FAIR},
        lambda s, p: len(leaves(s)) <= 3 and recall(p, 1) >= 0.8 and monotone(s, LENGTH, 1)
        and rate_gap(p, only_yes=False) <= Fraction(3, 10),
    ),
}  # fmt: skip


def best(holds, penalty: Fraction = PENALTY, complete: bool = False, bins: int = BINS) -> Fraction | None:
    codes = sample()[1].codes
    return max(
        (
            Fraction(int((p == codes).sum()), N) - penalty * len(leaves(s))
            for s, p in judged(bins)
            if holds(s, p) and (not complete or len(leaves(s)) == 4)
        ),
        default=None,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_best_tree_under_constraints_given_by_name(name):
    asked, holds = CONSTRAINTS[name]
    wanted = best(holds)
    assert name == "none" or wanted < best(lambda s, p: True)
    for method in FLOW:
        result = run(method, **asked)
        assert result.certificate.status is Status.OPTIMAL
        assert result.certificate.objective == pytest.approx(float(wanted), abs=1e-9), method
        assert result.certificate.bound == pytest.approx(float(wanted), abs=1e-9)
        predicted = result.tree.predict(sample()[0].matrix())
        as_shape = [s for s, p in judged() if holds(s, p) and (p == predicted).all()]
        assert as_shape, method


@pytest.mark.slow
@pytest.mark.parametrize("method", ["oct", "binoct"])
@pytest.mark.parametrize("name", ["none", "columns", "recall", "opportunity", "pairs", "rising"])
def test_baselines_accept_constraints(method, name):
    asked, holds = CONSTRAINTS[name]
    bins = 2 if method == "oct" else BINS  # the models of OCT are the slowest
    of = {} if method == "oct" else {"penalty": Fraction(0), "complete": True}
    result = run(method, **asked, bins=bins)
    wanted = best(holds, bins=bins, **of)
    assert name == "none" or wanted < best(lambda s, p: True, bins=bins, **of)
    assert result.certificate.status is Status.OPTIMAL
    assert result.certificate.objective == pytest.approx(float(wanted), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["scip", "gurobi", "highs"])
@pytest.mark.parametrize("method", FLOW)
def test_certificate_names_solver_and_share_of_time_in_hooks(method, solver):
    result = run(method, solver=solver, recall="yes: 0.95")
    wanted = best(lambda s, p: recall(p, 1) >= 0.95)
    assert result.certificate.objective == pytest.approx(float(wanted), abs=1e-9)
    assert result.certificate.solver == result.summary["solver"] == solver
    assert result.certificate.solver_version
    (evidence,) = result.certificate.evidence
    assert evidence["solver"] == solver
    assert 0 <= evidence["share_in_hooks"] <= 1
    if method != "flowoct" and solver != "gurobi":
        assert evidence["seconds_in_hooks"] > 0
        assert sum(result.certificate.cuts.values()) > 0


@pytest.mark.parametrize("first", ["none", "cart", "exact"])
@pytest.mark.parametrize("method", FLOW)
def test_every_first_tree_leads_to_the_same_value(method, first):
    result = run(method, first_tree=first, exact_seconds=600)
    start = result.certificate.warm_start_objective
    wanted = float(best(lambda s, p: True))
    assert result.certificate.objective == pytest.approx(wanted, abs=1e-9)
    if first == "none":
        assert start is None
    elif first == "exact":
        assert start == pytest.approx(wanted, abs=1e-9)
        assert result.certificate.nodes <= 1
    else:
        assert start <= wanted + 1e-9


@pytest.mark.parametrize("method", [*FLOW, "oct", "exact"])
def test_contradicting_constraints_say_what_can_be_reached(method):
    shortfall = min(max(0, 1 - recall(p, 0), 1 - recall(p, 1)) for s, p in judged() if len(leaves(s)) <= 2)
    with pytest.raises(InfeasibleError, match="No tree satisfies the constraints") as caught:
        run(method, recall="yes: 1; no: 1", max_leaves=2)
    assert caught.value.best == pytest.approx(float(shortfall), abs=1e-9)
    assert caught.value.of == "shortfall of the recalls"
    assert lowered_recalls_words(shortfall, 2) in str(caught.value)
    assert best(lambda s, p: recall(p, 0) == recall(p, 1) == 1) is None
    # no number of leaves would reach these recalls, so the message must not suggest one
    assert "leaves" not in str(caught.value).split("percentage points.")[1]


@pytest.mark.parametrize("method", FLOW)
def test_reachable_leaves_and_columns_are_reported_too(method):
    reached = max(recall(p, 1) for s, p in judged() if recall(p, 0) == 1)
    asked = {"recall": f"no: 1; yes: {reached.numerator}/{reached.denominator}"}
    fitting = [s for s, p in judged() if recall(p, 0) == 1 and recall(p, 1) >= reached]
    fewest = min(len(leaves(s)) for s in fitting)
    narrow = min(len(set().union(*paths(s))) for s in fitting if len(leaves(s)) <= 4)
    assert fewest > 1
    with pytest.raises(InfeasibleError, match=f"can be satisfied with {fewest} leaves"):
        run(method, **asked, max_leaves=1)
    assert narrow > 1
    with pytest.raises(InfeasibleError, match=f"can be satisfied with {narrow} columns"):
        run(method, **asked, max_columns=1)


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        ({"recall": "maybe: 0.5"}, "'maybe' is not a class"),
        ({"recall": "yes: much"}, "not a share"),
        ({"recall": "yes: 1.5"}, "not between 0 and 1"),
        ({"fairness": "parity", "fairness_column": "age"}, "'age' is not a column"),
        ({"fairness": "parity", "fairness_column": "length"}, "groups can be compared"),
        ({"forbidden_pairs": "length"}, "not a pair"),
        ({"forbidden_pairs": "length + age"}, "'age' is not a column"),
        ({"monotone": "length"}, "no direction"),
        ({"monotone": "length up", "depth": 5}, "possible up to depth 4"),
    ],
)
def test_unreadable_constraint_is_refused(asked, where):
    with pytest.raises(ParameterError, match=where):
        run("bendoct", **asked)


@pytest.mark.parametrize("method", [*FLOW, "oct", "binoct"])
def test_columns_that_never_change_leave_one_leaf_with_a_proof(method):
    table = Table(
        columns=(Column(schema=ColumnSchema(name="flat", kind=ColumnKind.NUMERIC), cells=np.ones(5)),),
        row_numbers=np.arange(5),
    )
    labels = Labels(name="y", classes=("no", "yes"), codes=np.array([0, 1, 1, 1, 0], np.int32))
    result = train(TrainRequest(table=table, labels=labels, method=method, parameters={"depth": 2}))
    assert result.tree.n_leaves == 1
    assert result.certificate.status is Status.OPTIMAL
    assert result.certificate.objective == result.certificate.bound == pytest.approx(0.6)


@pytest.mark.parametrize("method", FLOW)
def test_no_time_gives_the_first_tree_and_a_bound_that_holds(method):
    result = run(method, time_limit=0.0)
    wanted = float(best(lambda s, p: True))
    assert result.certificate.objective <= wanted + 1e-9 <= result.certificate.bound + 2e-9
    assert result.certificate.status in (Status.TIME_LIMIT, Status.OPTIMAL)


@pytest.mark.parametrize("method", [*FLOW, "oct", "binoct"])
@pytest.mark.parametrize("values", [[1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 2.0, 3.0]])
@pytest.mark.parametrize("codes", [[0, 1, 1, 1], [0, 0, 0, 0]])
def test_binoct_constraints_refer_to_complete_tree_for_any_rows(method, values, codes):
    """With a constant column or one class, no split is needed, but binoct still has four leaves."""
    table = Table(
        columns=(Column(schema=ColumnSchema(name="a", kind=ColumnKind.NUMERIC), cells=np.array(values)),),
        row_numbers=np.arange(4),
    )
    labels = Labels(name="y", classes=("no", "yes")[: max(codes) + 1], codes=np.array(codes, np.int32))
    for limit in (3, 4):
        parameters = {"depth": 2, "max_leaves": limit}
        request = TrainRequest(table=table, labels=labels, method=method, parameters=parameters)
        if method == "binoct" and limit == 3:
            with pytest.raises(InfeasibleError, match="with 4 leaves") as caught:
                train(request)
            assert (caught.value.best, caught.value.of) == (4, "leaves")
            continue
        result = train(request)
        assert result.certificate.status is Status.OPTIMAL
        if len(set(values)) == 1 or not any(codes):
            assert result.tree.n_leaves == 1


def test_complete_tree_uses_a_column_even_if_none_splits_rows():
    table = Table(
        columns=(Column(schema=ColumnSchema(name="a", kind=ColumnKind.NUMERIC), cells=np.ones(4)),),
        row_numbers=np.arange(4),
    )
    labels = Labels(name="y", classes=("no", "yes"), codes=np.array([0, 1, 1, 1], np.int32))
    for depth, limit, fits in ((2, 0, False), (2, 1, True), (0, 0, True)):
        parameters = {"depth": depth, "max_columns": limit}
        request = TrainRequest(table=table, labels=labels, method="binoct", parameters=parameters)
        if fits:
            assert train(request).certificate.status is Status.OPTIMAL
        else:
            with pytest.raises(InfeasibleError, match="with 1 column"):
                train(request)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["oct", *FLOW])
@pytest.mark.parametrize("solver", ["scip", "gurobi"])
def test_prices_finer_than_a_solver_sees_are_kept_exactly(method, solver):
    """A leaf costs a ten-millionth of a row, or nearly one.

    Objective and bound equal those of the exact search to the last digit.
    """
    for seed in range(1 if method == "oct" else 3):  # the models of OCT are the slowest
        r = np.random.default_rng(seed)
        n = int(r.integers(6, 16))
        schema = [ColumnSchema(name=f"x{j}", kind=ColumnKind.NUMERIC) for j in range(3)]
        columns = tuple(Column(schema=s, cells=r.integers(0, 2, n).astype(float)) for s in schema)
        table = Table(columns=columns, row_numbers=np.arange(n))
        labels = Labels(name="y", classes=("a", "b"), codes=np.append(r.integers(0, 2, n - 2), [0, 1]).astype(np.int32))
        for penalty in (1e-7, 3e-9, 0.1111111111):
            common = {"depth": 2, "leaf_penalty": penalty}
            certificate = train(TrainRequest(table=table, labels=labels, method="exact", parameters=common)).certificate
            mip = common | {"solver": solver, "first_tree": "none"}
            found = train(TrainRequest(table=table, labels=labels, method=method, parameters=mip)).certificate
            assert found.status is certificate.status is Status.OPTIMAL
            assert (found.objective, found.bound) == pytest.approx(
                (certificate.objective, certificate.bound), abs=1e-13
            )


@pytest.mark.parametrize(
    ("method", "seed", "gap"), [("flowoct", 57, 0.05), ("bendoct", 9, 0.05), ("bendoct", 15, 0.03)]
)
def test_requested_gap_works_with_a_fine_price(method, seed, gap):
    r = np.random.default_rng(seed)
    n = int(r.integers(15, 40))
    X = r.integers(0, 2, (n, 5)).astype(float)
    y = r.integers(0, 2, n).astype(np.int32)
    schema = [ColumnSchema(name=f"x{j}", kind=ColumnKind.NUMERIC) for j in range(5)]
    table = Table(
        columns=tuple(Column(schema=s, cells=v) for s, v in zip(schema, X.T, strict=True)), row_numbers=np.arange(n)
    )
    labels = Labels(name="y", classes=("a", "b"), codes=y)
    parameters = {"depth": 2, "leaf_penalty": 1e-9, "mip_gap": gap, "solver": "scip", "first_tree": "none"}
    certificate = train(TrainRequest(table=table, labels=labels, method=method, parameters=parameters)).certificate
    assert certificate.status is Status.OPTIMAL
    assert certificate.gap <= gap


SCIP_GIVES_UP = [
    ("bendoct", {"depth": 2, "bins": 3}),
    ("bendoct", {"depth": 2, "bins": 3, "first_tree": "none"}),
    ("flowoct", {"depth": 2, "bins": 3}),
    ("oct", {"depth": 2, "bins": 3}),
    ("binoct", {"depth": 2, "bins": 3}),
    ("odt", {"depth": 2, "bins": 3, "solver": "scip"}),
    ("oct-h", {"depth": 1, "first_trees": "cart", "search_seconds": 0.3}),
]


def gives_up(session):
    raise Exception("SCIP: error in LP solver!")


@pytest.mark.parametrize(("method", "parameters"), SCIP_GIVES_UP)
def test_failed_solver_keeps_first_tree_and_proves_nothing(method, parameters, monkeypatch):
    monkeypatch.setattr("trainer.milo.scip._run", gives_up)
    # otherwise the case analysis would prove it without the solver
    monkeypatch.setattr("trainer.families.oblique.raising.TIME_SHARE", 0.0)
    table, labels = sample()
    certificate = train(TrainRequest(table=table, labels=labels, method=method, parameters=parameters)).certificate
    assert certificate.status is Status.HEURISTIC
    assert certificate.bound > certificate.objective
    assert "failed" in {record.get("ended") for record in certificate.evidence}


def test_a_solver_that_gives_up_before_an_admitted_tree_says_so(monkeypatch):
    monkeypatch.setattr("trainer.milo.scip._run", gives_up)
    with pytest.raises(SolverError, match="gave up before it found a tree"):
        run("bendoct", first_tree="none", recall="no: 0.6; yes: 0.6")


@pytest.mark.parametrize("leaves", [1, 3])
def test_binoct_error_says_trees_are_complete_if_too_few_leaves(leaves):
    X = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    labels = Labels(name="y", classes=("a", "b"), codes=np.array([0, 1, 1, 0], np.int32))
    asked = {"depth": 2, "max_leaves": leaves}
    with pytest.raises(InfeasibleError, match="only complete trees: every tree of depth 2 has 4 leaves") as caught:
        train(TrainRequest(table=numeric_table(X), labels=labels, method="binoct", parameters=asked))
    assert caught.value.best == 4
    assert "No tree" not in str(caught.value)


def test_binoct_error_says_tree_needs_column_if_none_allowed():
    X = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    labels = Labels(name="y", classes=("a", "b"), codes=np.array([0, 1, 1, 0], np.int32))
    asked = {"depth": 2, "max_columns": 0}
    with pytest.raises(InfeasibleError, match="asks about at least one column") as caught:
        train(TrainRequest(table=numeric_table(X), labels=labels, method="binoct", parameters=asked))
    assert caught.value.best == 1
    request = TrainRequest(
        table=numeric_table(X), labels=labels, method="binoct", parameters=asked | {"max_columns": 1}
    )
    assert train(request).certificate.status is Status.OPTIMAL  # the message promises that this setting is solved
