"""The workbench over subsets equals enumeration: values, prices, conflicts and price lists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.exact.workbench_cases import INFINITE
from tests.trainer.odt.workbench_cases import (
    UNEVEN,
    Enumerated,
    laid_out,
    random_problem,
    random_wishes,
    table,
    uneven,
    with_empty_cells,
)
from tests.trainer.oracles.workbench import (
    check_stopped_lists,
    column_prices,
    is_smallest_conflict,
    kept,
    places,
    plain,
)
from trainer.data.problem import Problem
from trainer.editing.prefix import Prefix
from trainer.editing.wishes import held_questions, satisfies
from trainer.errors import DataError, ParameterError
from trainer.families.odt.editing import space as spaces
from trainer.families.odt.editing.bench import SubsetWorkbench, subset_bench
from trainer.families.odt.topology import parse, subtopologies
from trainer.methods.monitor import Monitor
from trainer.registry import get
from trainer.table import Labels


def instance(seed, *, empty_cells=False):
    rng = np.random.default_rng(seed)
    deep = seed % 8 == 3
    card = 1 if seed % 5 == 1 else 0
    problem = random_problem(rng, deep=deep)
    if empty_cells:
        problem = with_empty_cells(rng, problem)
    depth = 3 if deep else int(rng.integers(0, 3)) if seed % 9 == 0 else 2
    bench = SubsetWorkbench(problem, depth=depth, bins=4, card=card)
    texts = random_wishes(rng, problem, bench.space.questions, card)
    wishes = bench.wishes(texts)
    return problem, bench, texts, wishes, Enumerated(problem, bench, wishes, depth, card), rng


@seeds(100)
def test_values_prices_and_conflicts_are_those_of_enumeration(seed):
    check_completion(instance(seed))


@seeds(100)
def test_wishes_with_empty_cells_are_those_of_enumeration(seed):
    check_completion(instance(seed, empty_cells=True))


def check_completion(made):
    """Compare cost, prices and conflict with all trees."""
    problem, bench, texts, wishes, brute, _ = made
    want = brute.best(wishes)
    completion = bench.complete(texts)
    if want == INFINITE:
        assert not completion.found
        assert completion.reason
        assert is_smallest_conflict(completion.conflict, brute.best, INFINITE)
        return
    assert completion.found
    assert completion.cost == completion.bound == want
    shape = plain(completion.tree)
    spoken = [brute.spoken(w) for w in wishes]
    assert kept(shape, spoken, brute.columns)
    assert brute.cost(shape, spoken) == want
    assert problem.n - problem.correct(bench.tree(completion.tree)) == bench.space.cost_of(completion.tree)[0] == want
    for price in completion.prices:
        assert price.price == want - brute.best([w for w in wishes if w != price.wish]) >= 0
    assert completion.optimum.cost == completion.optimum.bound == brute.best([])


@seeds(40)
def test_price_lists_with_empty_cells_are_those_of_enumeration(seed):
    _, bench, texts, wishes, brute, rng = instance(seed, empty_cells=True)
    completion = bench.complete(texts)
    if completion.found:
        check_price_list(bench, completion, texts, wishes, brute, rng)


@seeds(40)
def test_questions_on_missing_values_separate_rows_like_splits(seed):
    _, bench, _, _, _, _ = instance(seed, empty_cells=True)
    space = bench.space
    for question in range(space.questions.encoded):
        yes, _ = space.split(space.all_rows, question)
        expected = np.flatnonzero(space.questions.answers(question)[space.origin])
        assert yes.tolist() == expected.tolist()
        if not space.questions.is_barred(question, frozenset()):
            (wish,) = bench.wishes([f"ask root {space.questions.wish(question)}"])
            assert wish.item.questions == (question,)


@seeds(60)
def test_price_lists_give_the_cheapest_question_of_each_column(seed):
    problem, bench, texts, wishes, brute, rng = instance(seed)
    completion = bench.complete(texts)
    if not completion.found:
        return
    place, want = check_price_list(bench, completion, texts, wishes, brute, rng)
    if seed % 8 in (0, 3):
        shape = bench.space.shape
        card = 1 if seed % 5 == 1 else 0

        def fresh():
            return SubsetWorkbench(problem, shape=shape, bins=4, card=card)

        check_stopped_lists(fresh, bench, texts, completion.tree, place, want)


def check_price_list(bench, found, texts, wishes, brute, rng):
    """Compare a price list with all trees that agree above the place. Return the place and the prices by column."""
    tree = plain(found.tree)
    place = str(rng.choice([p for p, _ in places(tree)]))
    spoken = [brute.spoken(w) for w in wishes if not (w.place == place and w.item.verb in ("ask", "leaf"))]
    want = column_prices(brute, tree, place, spoken)
    got = list(bench.price_list(place or "root", texts, tree=found.tree))
    assert all(p.proved for p in got)
    assert {brute.columns[p.question]: p.price for p in got} == want
    assert all(p.tree[0] == p.question for p in got)
    return place, want


@seeds(90)
def test_wishes_in_uneven_topology_agree_with_enumeration(seed):
    problem, bench, texts, wishes, brute, rng = uneven(seed)
    want = brute.best(wishes)
    completion = bench.complete(texts)
    if want == INFINITE:
        assert not completion.found
        assert completion.reason
        assert is_smallest_conflict(completion.conflict, brute.best, INFINITE)
        return
    assert completion.cost == completion.bound == want
    shape = plain(completion.tree)
    spoken = [brute.spoken(w) for w in wishes]
    assert kept(shape, spoken, brute.columns)
    assert laid_out(shape, bench.space.shape)
    assert problem.n - problem.correct(bench.tree(completion.tree)) == want
    for price in completion.prices:
        assert price.price == want - brute.best([w for w in wishes if w != price.wish]) >= 0
    assert completion.optimum.cost == completion.optimum.bound == brute.best([])
    check_price_list(bench, completion, texts, wishes, brute, rng)


def all_shapes(height):
    """Return the tree of one leaf and the topologies of all others, as `laid_out` takes trees."""
    below = all_shapes(height - 1) if height else []
    return [None, *(("a question", yes, no) for yes in below for no in below)]


@pytest.mark.parametrize("topology", [*UNEVEN, "[[..][.[[..][..]]]]", "[[.[..]][.[[..][.[..]]]]]"])
def test_depth_wish_allows_topology_trees_within_it(topology):
    shape = parse(topology)
    for height in range(4):
        largest = subtopologies(shape, height)
        assert all(one.depth <= height for one in largest)
        for tree in all_shapes(height):
            assert laid_out(tree, shape) == (tree is None or any(laid_out(tree, one) for one in largest))


def test_depth_wish_allows_trees_with_trivial_tests_removed():
    columns = [(np.array([1, 1, 0, 1, 2]), ("a", "b", "c d")), (np.array([1, 0, 0, 1, 1]), ())]
    labels = Labels(name="class", classes=("k", "l", "m"), codes=np.array([2, 2, 1, 2, 0], np.int32))
    bench = SubsetWorkbench(Problem(table=table(columns), labels=labels), shape=parse("[.[[..][..]]]"))
    completion = bench.complete(["depth root 2", "ask root c 0 in b", "ask y c 1", "ask n c 0"])
    assert completion.optimal
    assert completion.cost == 0


def test_conflict_names_rows_if_trivial_tests_leave_room():
    columns = [(np.array([1, 1, 0, 0, 2]), ("a", "b", "c d")), (np.array([1, 0, 0, 1, 1]), ())]
    labels = Labels(name="class", classes=("k", "l"), codes=np.array([0, 1, 1, 0, 0], np.int32))
    wishes = ["ask root c 0 in b", "ask ny c 1", "ask nn c 1"]
    for topology, words in (
        ("[[..][.[[..][..]]]]", "3 rows arrive"),
        ("[[..][.[..]]]", "No tree of the topology"),
    ):
        completion = SubsetWorkbench(Problem(table=table(columns), labels=labels), shape=parse(topology)).complete(
            wishes
        )
        assert words in completion.reason


@pytest.mark.slow
def test_uneven_topology_has_training_optimum_and_names_no_room():
    for seed, topology in ((0, "depth-2.5"), (1, "imbalanced"), (2, "[.[[..][..]]]")):
        problem = larger(seed, classes=2)
        settings = get("odt").settings({"topology": topology})
        trained = get("odt").solve(problem, settings, Monitor())
        bench = subset_bench(problem, settings)
        assert bench.complete().cost == round(problem.n * (1 - trained.bound))
    completion = SubsetWorkbench(larger(0, classes=2), shape=parse("[.[..]]")).complete(["ask y c 0", "ask n c 1"])
    assert {w.text for w in completion.conflict} == {"ask y c 0", "ask n c 1"}
    assert "has questions at all these places" in completion.reason


def larger(seed, *, classes, rows=60):
    """Return a problem with so many categories that most subsets are never examined."""
    rng = np.random.default_rng(seed)
    columns = [
        (rng.integers(0, 6, rows), tuple("abcdef")),
        (rng.integers(0, 5, rows), tuple("uvwxy")),
        (rng.random(rows), ()),
    ]
    y = ((columns[0][0] % 3 + columns[1][0] % 2 + (rng.random(rows) < 0.3)) % classes).astype(np.int32)
    return Problem(table=table(columns), labels=Labels(name="class", classes=tuple("klm"[:classes]), codes=y))


WISHES = [
    ["forbid y c 0", "together root c 1 in u|w"],
    ["leaf ny k", "depth y 1"],
    ["ask y c 1", "together n c 0 in a|b|f"],
    ["ask root c 0 in a|b", "forbid yy c 1", "leaf nn"],
    ["ask root c 2 <= 0.5", "together y c 0 in a|c"],
]


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_categories_one_by_one_find_what_all_subsets_together_do(classes):
    for seed, wishes in enumerate(WISHES):
        bench = SubsetWorkbench(larger(seed, classes=classes), depth=2 + (classes == 2 and seed < 2), bins=4)
        plainly = Prefix(bench.space)
        completion = bench.complete(wishes, prices=False)
        read = bench.wishes(wishes)
        items = frozenset(w.item for w in read) | held_questions(read, bench.space.questions)
        assert completion.optimal
        assert completion.cost == plainly.value(plainly.top(items)).upper
        assert satisfies(completion.tree, items, bench.space.questions)


def test_a_stopped_search_keeps_a_valid_bound():
    problem = larger(5, classes=3)
    for patience in (0, 4, 40, 400):
        left = iter(range(patience))
        completion = SubsetWorkbench(problem, depth=3).complete(
            ["forbid y c 1", "leaf nyn"], stop=lambda left=left: next(left, None) is None
        )
        assert not completion.optimal
        if completion.found:
            assert completion.bound <= completion.cost <= problem.n
    bench = SubsetWorkbench(problem, depth=3)
    assert not any(line.proved for line in bench.price_list("root", tree=0, stop=lambda: True))
    assert bench.complete(["forbid y c 1"], prices=False).optimal


@pytest.mark.parametrize("patience", range(14))
def test_search_stopped_anywhere_answers_and_bench_stays_right(patience):
    bench = SubsetWorkbench(larger(0, classes=2, rows=20), depth=2)
    left = iter(range(patience))
    completion = bench.complete(["forbid y c 2"], stop=lambda: next(left, None) is None)
    least = bench.complete(["forbid y c 2"])
    assert least.optimal
    assert completion.bound <= least.cost
    assert not completion.found or completion.cost >= least.cost


def test_the_optimum_without_wishes_is_that_of_training():
    for seed, classes in ((0, 2), (1, 3)):
        problem = larger(seed, classes=classes)
        trained = get("odt").solve(problem, get("odt").settings({"depth": 2}), Monitor())
        assert SubsetWorkbench(problem, depth=2).complete().cost == round(problem.n * (1 - trained.bound))


def test_too_many_subsets_are_refused_and_name_the_column(monkeypatch):
    problem = larger(0, classes=2)
    monkeypatch.setattr(spaces, "MAX_QUESTIONS", 80)
    with pytest.raises(DataError, match="'c 0' alone 62"):
        SubsetWorkbench(problem, depth=2)


@pytest.mark.parametrize(
    ("wish", "word"),
    [
        ("together root c 0 in a|g", "does not occur"),
        ("together root c 2 in 1|2", "has numbers"),
        ("together root c 0", "two or more"),
        ("together root c 0 in a", "two or more"),
        ("together root c 0 in a|z", "no category"),
    ],
)
def test_categories_that_cannot_be_joined_are_refused(wish, word):
    problem = larger(0, classes=2)
    table = replace(problem.table, columns=tuple(with_level(c) for c in problem.table.columns))
    with pytest.raises(ParameterError, match=word):
        SubsetWorkbench(replace(problem, table=table), depth=2).complete([wish])


def with_level(column):
    """Return the column with an additional category that never occurs."""
    levels = column.schema.categories
    return replace(column, schema=replace(column.schema, categories=(*levels, "g"))) if levels else column


@pytest.mark.parametrize("depth", [0, 1])
def test_shallow_trees(depth):
    bench = SubsetWorkbench(larger(1, classes=2), depth=depth)
    assert bench.complete(["ask root c 0"]).found == (depth > 0)
    assert bench.complete([]).optimal
    assert len(bench.questions) == 62 + 30 + 9


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        (
            ["together root c 0 in a|b", "ask y c 0 in a|c"],
            "separates categories that 'together root c 0 in a|b' keeps together",
        ),
        (["ask root c 0", "ask root c 1"], "two questions at one place"),
        (["leaf root k", "leaf root l"], "no tree keeps all of them"),
        (["ask root c 0 in a", "ask y c 0 in a"], "does not separate the"),
    ],
)
def test_a_contradiction_is_explained(wishes, words):
    completion = SubsetWorkbench(larger(2, classes=2), depth=2).complete(wishes)
    assert {w.text for w in completion.conflict} == set(wishes)
    assert words in completion.reason


def test_held_threshold_counts_for_optimum_at_its_place_only():
    """The bins cut at 4.5, but below 'a' the best cut is 2.5, and a constraint excludes 'a' from the best tree."""
    x = np.tile(np.arange(10.0), 4)
    c = np.repeat([0, 1, 0, 1], 10)
    y = np.where(c == 0, x <= 2.5, 1).astype(np.int32)
    columns = [(c, ("a", "b")), (x, ()), (np.arange(40) % 3 == 0, ("u", "v"))]
    problem = Problem(table=table(columns), labels=Labels(name="class", classes=("k", "l"), codes=y))
    bench = SubsetWorkbench(problem, depth=2, bins=2)
    assert bench.complete().cost > 0
    completion = bench.complete(["ask y c 1 <= 2.5", "forbid root c 0"])
    assert completion.optimal
    assert completion.cost > completion.optimum.cost == completion.optimum.bound == 0
