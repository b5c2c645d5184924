"""Rows, mistakes, leaves, thresholds and groups on the model page equal counts by hand."""

from __future__ import annotations

import csv
import html
import io
import itertools
import re
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import parse_qsl

import numpy as np
import pytest

from octweb.datasets import actions as datasets
from octweb.datasets import stored
from octweb.datasets.choice import ReadOptions
from octweb.decide.pictures import labelled_ticks
from octweb.figures.split.costs import CutCosts
from octweb.registry.comparing.pairs import compare_pair
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions
from octweb.registry.models import TreeModel
from octweb.registry.page import costs, groups, node, performance, rowsets, thresholds
from octweb.registry.page.modes import MODES
from octweb.registry.page.scene import ModelScene
from octweb.registry.page.smaller_tree import smaller_model
from octweb.registry.page.tabs import TABS
from trainer.data.reader import load
from trainer.data.share_interval import CostSums, of_cost_sums
from trainer.table import ColumnKind, ColumnSchema
from trainer.training.run import TrainRequest, train
from trainer.tree.numbers import number_text
from trainer.tree.splits import Linear, Threshold

CLASSES = ("bad", "good")


@pytest.fixture(autouse=True)
def _media(media):
    pass


@pytest.fixture
def table(owner):
    """Provide a data set of 400 rows with ties; a column with empty cells is left out of the training."""
    rng = np.random.default_rng(7)
    X = rng.integers(0, 30, (400, 2)) / 2
    town = rng.choice(["north", "south", "east", ""], 400)
    y = np.where(X[:, 0] + 0.5 * X[:, 1] + rng.normal(0, 3, 400) > 10, "good", "bad")
    lines = [f"{a:g},{b:g},{t},{k}" for (a, b), t, k in zip(X, town, y, strict=True)]
    text = "first,second,town,answer\n" + "\n".join(lines) + "\n"
    choice = datasets.ColumnChoice(target="answer", ignore=["town"])
    return datasets.create(owner=owner, file=io.BytesIO(text.encode()), source_name="t.csv", name="t", choice=choice)


def trained_on(table, owner, *, share=0.25, folds=0, **parameters):
    rows, labels = datasets.load(table)
    request = TrainRequest(
        table=rows, labels=labels, method="cart", parameters={"depth": 3, **parameters}, test_share=share, folds=folds
    )
    return actions.register(owner=owner, document=train(request).model.to_json(), dataset=table, title="T")


def scene_of(model, user, **query):
    return ModelScene(model=model, user=user, inside=True, query={k: str(v) for k, v in query.items()})


@pytest.mark.one_database
def test_rows_of_a_node_are_those_that_walk_through_it(table, owner):
    scene = scene_of(trained_on(table, owner), owner)
    tree = scene.tree
    rows = scene.rows
    for v in tree.nodes:
        for part, positions in (("training", rows.training), ("unseen", rows.unseen)):
            by_hand = [i for i in positions.tolist() if v.id in tree.path_to(int(tree.apply(rows.matrix[[i]])[0]))]
            query = rowsets.row_query(scene, {"node": str(v.id), "part": part})
            assert sorted(rowsets.positions(scene, query).tolist()) == by_hand
        assert len(scene.reaching(v.id, "training")) == v.rows


@pytest.mark.slow
@pytest.mark.one_database
@pytest.mark.parametrize("sort", ["line", "actual", "predicted", "leaf", "c0", "c1", "nonsense"])
@pytest.mark.parametrize("descending", ["", "1"])
def test_rows_are_sorted_and_the_csv_has_all_of_them(table, owner, sort, descending):
    scene = scene_of(trained_on(table, owner), owner)
    query = rowsets.row_query(scene, {"part": "training", "sort": sort, "descending": descending, "wrong": "1"})
    lines = list(csv.DictReader(io.StringIO("".join(rowsets.csv_of(scene, query)))))
    wrong = [i for i in scene.rows.training if scene.predicted[i] != scene.rows.codes[i]]
    assert len(lines) == len(wrong) == rowsets.table(scene, query)["count"]
    keys = {"line": "line", "leaf": "leaf", "c0": "first", "c1": "second"}
    if sort in keys:
        values = [float(line[keys[sort]]) for line in lines]
        assert values == sorted(values, reverse=bool(descending))
    for line in lines:
        assert int(line["line"]) == int(line["row"]) + 1  # the file has a header line
        assert line["actual"] != line["predicted"]


@pytest.mark.one_database
def test_a_row_is_followed_by_the_line_of_the_uploaded_file(table, owner, client):
    model = trained_on(table, owner)
    scene = scene_of(model, owner)
    client.force_login(owner)
    address = f"/models/{model.pk}/"
    for place in (0, 100, 399):
        line = place + 2  # the header is line 1
        page = client.get(address, {"line": line})
        assert page.context["walk"].leaf == scene.leaf_of[place]
        text = page.content.decode()
        assert "Follow line" in text
        assert f"line {line} comes here" in text
        assert f'value="{line}" size="6"' in text
        # addresses of earlier versions must still work
        assert client.get(address, {"row": place + 1}).context["walk"] == page.context["walk"]
    for line, words in (
        (1, "On line 1 of the uploaded file there is no row"),
        (402, "On line 402 of"),
        ("x", "is not a line number"),
    ):
        answer = client.get(address, {"line": line})
        assert answer.status_code == 200
        assert words in answer.content.decode()
    rows = client.get(f"{address}rows/", {"part": "training"}).content.decode()
    assert f'&amp;line={int(scene.rows.lines[scene.rows.training[0]])}"' in rows


@pytest.mark.one_database
def test_confusion_matrix_shows_cells_and_baseline(table, owner):
    scene = scene_of(trained_on(table, owner), owner)
    for part in ("unseen", "training"):
        at = scene.part(part)
        found = performance.mistakes(scene, part)
        for row in found["rows"]:
            for cell in row["cells"]:
                query = {"part": part, "actual": str(row["code"]), "predicted": str(cell["predicted"])}
                asked = rowsets.row_query(scene, query)
                assert cell["count"] == len(rowsets.positions(scene, asked))
        codes = scene.rows.codes[at]
        assert found["accuracy"] == pytest.approx(float((scene.predicted[at] == codes).mean()))
        assert found["baseline"] == pytest.approx(np.bincount(codes).max() / len(codes))
        assert found["interval"][0] < found["accuracy"] < found["interval"][1]


@pytest.mark.one_database
def test_costs_are_counted_row_by_row(table, owner, client):
    query = {"cost-0-1": "7,5", "cost-1-0": "0.5"}
    scene = scene_of(trained_on(table, owner), owner, **query)
    price = np.array([[0, 7.5], [0.5, 0]])
    training = scene.part("training")
    at = scene.part("unseen")
    actual = scene.rows.codes
    found = costs.cost_context(scene, "unseen")
    assert found["errors"] == []
    tree, relabelled, constant = found["ways"]
    paid = price[actual[at], scene.predicted[at]]
    assert tree["mean"] == pytest.approx(paid.mean())
    assert tree["wrong"] == (actual[at] != scene.predicted[at]).sum()
    answer = {
        leaf: price[actual[training[scene.leaf_of[training] == leaf]]].sum(axis=0).argmin()
        for leaf in np.unique(scene.leaf_of)
    }
    by_leaf = np.array([answer[leaf] for leaf in scene.leaf_of[at]])
    assert relabelled["mean"] == pytest.approx(price[actual[at], by_leaf].mean())
    assert relabelled["changed"] == sum(answer[leaf.id] != leaf.label for leaf in scene.tree.leaves) > 0
    best = price[actual[training]].sum(axis=0).argmin()
    assert constant["mean"] == pytest.approx(price[actual[at], best].mean())
    assert constant["words"] == f"no tree: always {CLASSES[best]}"

    client.force_login(owner)
    url = f"/models/{scene.model.pk}/costs/"
    assert tree["per_row"] in client.get(url, query).content.decode()
    refused = client.get(url, {"cost-0-1": "-3"}).content.decode()
    assert "A row of bad predicted good: “-3” is not a number" in refused
    assert "cost per row" not in refused
    crossed = trained_on(table, owner, share=0.0, folds=3)
    assert [way["words"][:9] for way in costs.cost_context(scene_of(crossed, owner), "folds")["ways"]] == [
        "this tree",
        "no tree: ",
    ]


@pytest.mark.one_database
@pytest.mark.parametrize("bound", [{"weight": "w"}, {"group": "g"}, {"weight": "w", "group": "g"}, {}])
def test_typed_costs_count_weights_and_groups(owner, bound):
    """Rows count as their weights, classes do not, and intervals are over groups."""
    rng = np.random.default_rng(5)
    lines = ["x,w,g,answer"]
    for i in range(240):
        x = rng.normal()
        lines.append(f"{x:.2f},{(0.5, 1, 3)[i % 3]},g{i // 12},{'rare' if x + rng.normal() > 1.6 else 'usual'}")
    table = datasets.create(
        owner=owner,
        file=io.BytesIO("\n".join([*lines, ""]).encode()),
        source_name="t.csv",
        name="t",
        choice=datasets.ColumnChoice(target="answer", ignore=["w", "g"]),
    )
    rows, labels, _ = load(stored.path_of(table.file), target="answer", missing={}, ignore=["w", "g"], **bound)
    asked = TrainRequest(
        table=rows, labels=labels, method="exact", parameters={"depth": 1, "goal": "balanced"}, test_share=0.5
    )
    model = actions.register(owner=owner, document=train(asked).model.to_json(), dataset=table, title="T")
    scene = scene_of(model, owner)
    w = scene.rows.weights_of(np.arange(240)) * (0.5 if "weight" in bound else 1)
    for part in ("unseen", "training"):
        at = scene.part(part)
        found = costs.cost_context(scene, part)
        assert found["rows"] == len(at)
        wrong = scene.rows.codes[at] != scene.predicted[at]
        tree, relabelled, constant = found["ways"]
        assert tree["wrong"] == wrong.sum()
        assert tree["mean"] == pytest.approx(w[at][wrong].sum() / w[at].sum())
        assert float(tree["whole"]) == pytest.approx(w[at][wrong].sum(), rel=1e-4)
        assert constant["words"] == "no tree: always usual"  # by the rows, not by the weights of the classes
        assert constant["mean"] == pytest.approx(w[at][scene.rows.codes[at] == 0].sum() / w[at].sum())
        if part == "training":
            assert relabelled["mean"] <= min(tree["mean"], constant["mean"])
        if "group" in bound:
            group = np.unique(scene.rows.groups[at], return_inverse=True)[1]
            sums = CostSums.of(np.bincount(group, wrong * w[at]), np.bincount(group, w[at]))
            assert tree["interval"] == tuple(number_text(end) for end in of_cost_sums(sums))


@pytest.mark.one_database
def test_equal_costs_are_the_share_of_wrong_rows(table, owner):
    scene = scene_of(trained_on(table, owner), owner)
    found = costs.cost_context(scene, "training")
    assert found["equal"]
    assert found["ways"][0]["mean"] == pytest.approx(1 - performance.mistakes(scene, "training")["accuracy"])
    assert found["ways"][1]["changed"] == 0


def test_many_classes_have_one_cost_each():
    names = tuple(f"k{i}" for i in range(6))
    for text, cost in (("1,000", 1000), ("2,5", 2.5)):
        assert costs.costs_of(("a", "b"), {"cost-0-1": text}).table[0, 1] == cost
    found = costs.costs_of(names, {"cost-2": "4"})
    assert found.table[2].tolist() == [4, 4, 0, 4, 4, 4]
    assert found.table.trace() == 0
    assert set(found.texts) == {f"cost-{i}" for i in range(6)}


@pytest.mark.one_database
def test_the_rows_of_a_cell_come_with_their_paths(table, owner, client):
    scene = scene_of(trained_on(table, owner), owner)
    query = rowsets.row_query(scene, {"part": "training", "actual": "0", "predicted": "1"})
    ends = performance.where_they_end(scene, rowsets.positions(scene, query))
    assert sum(end["rows"] for end in ends) == len(rowsets.positions(scene, query)) > 0
    for end in ends:
        way = scene.tree.path_to(end["leaf"])
        assert [step["id"] for step in end["path"]] == way[:-1]
        assert [step["answer"] for step in end["path"]] == [
            "yes" if child == scene.tree.nodes[v].left else "no" for v, child in itertools.pairwise(way)
        ]
    assert rowsets.row_query(scene, dict(parse_qsl(query.address(sort="c0")))) == replace(query, sort="c0")
    client.force_login(owner)
    lit = f'data-leaf="{",".join(str(end["leaf"]) for end in ends)}"'
    assert lit in client.get(f"/models/{scene.model.pk}/?mode=tree&{query.address()}").content.decode()
    page = client.get(f"/models/{scene.model.pk}/rows/?part=training&actual=0&predicted=1").content.decode()
    assert ends[0]["path"][0]["rule"] in page
    assert f"leaf {ends[0]['leaf']}" in page


@pytest.mark.one_database
def test_training_figures_never_replace_missing_unseen_ones(table, owner, client):
    model = trained_on(table, owner, share=0.0)
    scene = scene_of(model, owner)
    assert performance.parts_of(scene) == ["training"]
    assert performance.calibration(scene) == []
    client.force_login(owner)
    page = client.get(f"/models/{model.pk}/?mode=performance").content.decode()
    assert "Accuracy on unseen rows was not evaluated" in page
    assert "over the folds" not in page  # no folds were run
    crossed = scene_of(trained_on(table, owner, share=0.0, folds=3), owner)
    assert performance.chosen_part(crossed) == "folds"
    assert performance.mistakes(crossed, "folds")["n"] == 400
    low, high = performance.unseen_interval(crossed)
    assert low < crossed.file.metrics["cross_validation"]["accuracy"] < high
    page = client.get(f"/models/{crossed.model.pk}/?mode=performance").content.decode()
    assert "widened for folds that share training rows" in page


PLACES = [
    *(f"?mode={mode}" for mode in ("tree", "proof", "use", "history")),
    *(f"?mode=performance&part={part}" for part in ("unseen", "training", "folds")),
    *(f"?mode=tree&node={node}&tab={tab}" for node in (0, 1) for tab in ("question", "answer", "rows", "below", "proof")),
    "node/?node=0", "rows/?part=unseen", "rows/?part=training&actual=0&predicted=1", "groups/?group=first", "costs/?cost-0-1=3",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.one_database
@pytest.mark.parametrize("reader", ["shared with", "owner without data"])
@pytest.mark.parametrize("made", [{}, {"share": 0.0, "folds": 3}])
def test_page_is_complete_for_users_without_access_to_rows(table, owner, stranger, client, reader, made):
    model = trained_on(table, owner, **made)
    actions.share(model, by=owner, username=stranger.username, level="read")
    if reader == "owner without data":
        model.dataset = None
        model.save()
    client.force_login(stranger if reader == "shared with" else owner)
    answers = {place: client.get(f"/models/{model.pk}/{place}").status_code for place in PLACES}
    assert set(answers.values()) <= {200, 404}
    assert [answers[place] for place in PLACES[:7]] == [200] * 7
    matches = re.findall(
        r'data-figure-url="([^"]+)"', client.get(f"/models/{model.pk}/?mode=performance&part=training").content.decode()
    )
    assert matches == []  # no picture that needs the rows is offered
    text = " ".join(client.get(f"/models/{model.pk}/?mode=performance").content.decode().split())
    assert ("no rows were held out" in text) == bool(made.get("folds"))


@pytest.mark.one_database
def test_calibration_compares_training_shares_with_unseen_rows(table, owner):
    scene = scene_of(trained_on(table, owner), owner)
    points = performance.calibration(scene)
    for p in points:
        at = [i for i in scene.rows.unseen if scene.leaf_of[i] == p["leaf"]]
        assert p["rows"] == len(at) > 0
        assert p["seen"] == pytest.approx(np.mean([scene.rows.codes[i] == p["code"] for i in at]))
    tp, fp = performance.tree_point(scene, "unseen", 1)
    predicted = scene.predicted[scene.rows.unseen]
    codes = scene.rows.codes[scene.rows.unseen]
    assert (tp, fp) == (int(((predicted == 1) & (codes == 1)).sum()), int(((predicted == 1) & (codes == 0)).sum()))


def test_the_table_of_terms_has_the_digits_of_the_rule():
    schema = tuple(ColumnSchema(name=name, kind=ColumnKind.NUMERIC) for name in ("u", "v", "w"))
    split = Linear(features=(0, 1, 2), coefficients=(1.0, -0.123456, 2.50001), threshold=1.518712, levels=(-1, -1, -1))
    found = node.terms(
        SimpleNamespace(node=SimpleNamespace(split=split), tree=SimpleNamespace(schema=schema), rows=None)
    )
    assert {t["name"]: t["coefficient"] for t in found["terms"]} == {"u": "1", "v": "−0.123456", "w": "2.50001"}
    assert all(t["coefficient"].lstrip("−") in split.text(schema) for t in found["terms"] if t["name"] != "u")
    assert found["threshold"] == split.text(schema).split(" ≤ ")[1] == "1.518712"


@pytest.mark.one_database
def test_the_cost_of_every_threshold_is_that_of_the_tree_with_it(table, owner):
    from dataclasses import replace

    model = trained_on(table, owner)
    for v in scene_of(model, owner).tree.branches:
        scene = scene_of(model, owner, node=v.id)
        found = thresholds.costs(scene)
        assert isinstance(v.split, Threshold)
        at = scene.reaching(v.id, "training")
        below = scene.rows.matrix[at]
        classes = scene.rows.codes[at]

        def wrong(cut, scene=scene, v=v, below=below, classes=classes):
            nodes = list(scene.tree.nodes)
            nodes[v.id] = replace(v, split=replace(v.split, threshold=cut))
            return int((replace(scene.tree, nodes=tuple(nodes)).predict(below) != classes).sum())

        for i in range(0, len(found.cuts), 3):
            cut = found.cut(i)
            assert found.low[i] <= cut < found.high[i]
            assert found.wrong[i] == wrong(cut) == wrong(float(found.low[i]))
            assert found.yes[i] == (below[:, v.split.feature] <= cut).sum()
        assert found.cut(found.at) == found.own == v.split.threshold
        assert found.now == wrong(v.split.threshold)
        assert found.nobody == wrong(-1e9)
        assert found.everybody == wrong(1e9)


def costs_of(wrong, at, rows=1000):
    """Return costs with these counts of wrong rows at the thresholds 0.5, 1.5, …

    The tree's own threshold is at place `at`.
    """
    n = np.arange(len(wrong), dtype=float)
    return CutCosts(
        column="x",
        low=n,
        high=n + 1,
        yes=n.astype(int),
        wrong=np.array(wrong),
        own=at + 0.5,
        nobody=900,
        everybody=800,
        known=rows,
        rows=rows,
    )


@pytest.mark.parametrize(
    ("wrong", "at", "ends", "words"),
    [
        ((90, 14, 10, 12, 15, 90), 2, ("1.5", "4.5"), "2 to 5 rows more"),
        # the two values are adjacent, without one between them
        ((90, 14, 10, 12, 15, 10), 2, ("1.5", "5.5"), "at most 5 rows more"),
        ((90, 10, 9, 90, 9), 1, ("1.5", "2.5"), "1 row fewer"),
        ((7, 10, 12), 1, ("0.5", "2.5"), "3 fewer to 2 more"),
        ((10, 10), 0, ("0.5", "1.5"), "not one row more or fewer"),
        ((90, 10, 90), 1, None, None),
        ((90, 10, 9), -1, None, None),  # no row answers yes at the tree's own threshold
    ],
)
def test_the_range_in_which_hardly_more_rows_are_wrong(wrong, at, ends, words):
    found = thresholds.similar_thresholds(costs_of(wrong, at))
    assert found == (ends and {"from": ends[0], "to": ends[1], "words": words})


def test_thinned_curve_keeps_minimum_and_threshold_of_tree():
    wrong = np.random.default_rng(1).permutation(5000)
    costs = costs_of(wrong, at=3210)
    few = costs.thinned(100)
    assert 100 <= len(few.low) <= 102
    assert few.wrong[few.best] == 0
    assert few.cut(few.at) == costs.own
    assert few.now == costs.now == wrong[3210]
    assert set(zip(few.low, few.wrong, strict=True)) <= set(zip(costs.low, costs.wrong, strict=True))
    assert costs.thinned(5000) is costs


@pytest.mark.one_database
@pytest.mark.parametrize("column", ["first", "second", "town"])
def test_groups_cover_the_rows_and_count_right_ones(table, owner, column):
    scene = scene_of(trained_on(table, owner), owner)
    found = groups.groups(scene, column, "training")
    assert found["small"] == 0
    assert sum(g["rows"] for g in found["groups"]) == len(scene.rows.training)
    right = sum(round(g["accuracy"] * g["rows"]) for g in found["groups"])
    assert right == int((scene.predicted == scene.rows.codes)[scene.rows.training].sum())
    base = sum(round(g["base_rate"] * g["rows"]) for g in found["groups"])
    assert base == max(scene.tree.nodes[0].counts)
    if column == "town":
        assert {g["label"] for g in found["groups"]} == {"north", "south", "east", "missing"}
        assert not found["asked"]
    assert groups.groups(scene, "answer", "training") is None


def test_two_trees_are_compared_on_rows_that_neither_has_seen(table, owner, client, stranger):
    small = trained_on(table, owner, depth=1)
    large = trained_on(table, owner, depth=4)
    found = compare_pair(small, large)
    scenes = [scene_of(m, owner) for m in (small, large)]
    for part in found.parts:
        at = scenes[0].part(part.name)
        right = [s.predicted[at] == s.rows.codes[at] for s in scenes]
        assert part.n == len(at)
        assert part.both == int((right[0] & right[1]).sum())
        assert (part.first, part.second) == (int((right[0] & ~right[1]).sum()), int((~right[0] & right[1]).sum()))
        assert part.neither == int((~right[0] & ~right[1]).sum())
    assert "interval" in found.sentence
    assert ("neither can be called better" in found.sentence) == (found.parts[0].p > 0.05)
    unseen = found.parts[0]
    assert unseen.first != unseen.second
    ahead = small if unseen.first > unseen.second else large
    for either in (
        found,
        compare_pair(large, small),
    ):  # the interval belongs to the stated difference, whatever the order of the pair
        assert f"the accuracy of {ahead.title} (version {ahead.version}) is" in either.sentence
    assert found.sentence == compare_pair(large, small).sentence
    assert compare_pair(small, small).sentence.startswith("The two trees give the same answer")
    client.force_login(owner)
    address = f"models={small.pk}&models={large.pk}"
    page = client.get(f"/models/compare/?{address}").content.decode()
    assert "2 trees side by side" in page
    assert "neither has seen" in page
    lines = b"".join(client.get(f"/models/compare/rows.csv?{address}")).decode()
    rows = list(csv.DictReader(io.StringIO(lines)))
    assert len(rows) == int((scenes[0].predicted != scenes[1].predicted).sum())
    names = [f"{m.family.name} (version {m.version})" for m in (small, large)]
    assert set(names) <= set(rows[0])
    listed = client.get("/models/").content.decode()
    assert f"version {small.version}" in listed
    client.force_login(stranger)
    assert client.get(f"/models/compare/rows.csv?{address}").status_code == 404
    assert "side by side</h1>" not in client.get(f"/models/compare/?{address}").content.decode()


def test_modes_and_tabs_have_names_of_their_own_and_templates():
    from django.template.loader import get_template

    for entries in (MODES, TABS):
        assert len({entry.id for entry in entries}) == len(entries)
        for entry in entries:
            page = getattr(entry, "page", "")
            assert bool(page) != bool(entry.template)
            if entry.template:
                get_template(entry.template)


@pytest.mark.one_database
def test_codes_beside_question_link_to_column_editor(client, owner):
    """The link exists until the codes are declared, and opens a form that proposes them."""
    lines = [f"{(-9, -8, 3, 5, 20, 30)[i % 6]},{i % 7},{'good' if i % 6 > 3 else 'bad'}" for i in range(120)]
    file = io.BytesIO(("a & b,other,answer\n" + "\n".join(lines) + "\n").encode())
    coded = datasets.create(owner=owner, file=file, source_name="c.csv", name="c", target="answer")
    model = trained_on(coded, owner)
    client.force_login(owner)
    text = client.get(f"/models/{model.pk}/?mode=tree&node=0").content.decode()
    link = html.unescape(re.search(r'<a href="([^"]+)">Ask for them separately<', text)[1])
    assert link.startswith(f"/datasets/{coded.pk}/edit/?")
    form = client.get(link).content.decode()
    assert re.search(r'name="special-0" value="-9, -8"[^>]+autofocus', form)
    assert "Codes are written beside a &amp; b." in form
    for other in (link.replace("codes=-9", "codes=often"), link.replace("column=a", "column=z"), link.split("?")[0]):
        assert 'name="special-0" value=""' in client.get(other).content.decode()
    coded.refresh_from_db()
    assert "special" not in coded.columns[0]
    datasets.update(coded, choice=datasets.ColumnChoice(special={"a & b": (-9.0, -8.0)}))
    again = client.get(f"/models/{trained_on(coded, owner).pk}/?mode=tree&node=0").content.decode()
    assert "Ask for them separately" not in again


def test_equally_good_smaller_tree_is_suggested(table, owner, stranger, client):
    large = trained_on(table, owner, depth=6, min_leaf=1)
    assert smaller_model(scene_of(large, owner)) is None
    other_rows = trained_on(table, owner, depth=1, seed=7)
    small = trained_on(table, owner, depth=2)
    assert small.leaves < large.leaves
    TreeModel.objects.filter(pk__in=[small.pk, other_rows.pk]).update(unseen_accuracy=large.unseen_accuracy)
    found = smaller_model(scene_of(large, owner))
    assert found["model"] == small  # the model of the other rows has still fewer leaves, but does not count
    client.force_login(owner)
    page = " ".join(client.get(f"/models/{large.pk}/?mode=tree&node=0&tab=below").content.decode().split())
    assert "A smaller tree does as well." in page
    assert "one answer: " in page.partition("A smaller tree does as well.")[2]
    assert f'href="/models/{small.pk}/"' in page
    TreeModel.objects.filter(pk=small.pk).update(unseen_accuracy=large.unseen_accuracy - 0.001)
    assert smaller_model(scene_of(large, owner)) is None
    TreeModel.objects.filter(pk=small.pk).update(unseen_accuracy=large.unseen_accuracy)
    actions.share(large, by=owner, username=stranger.username, level="read")
    assert smaller_model(scene_of(large, stranger)) is None  # this user may not see the smaller model


@pytest.mark.one_database
def test_inspector_shows_words_of_ranks_instead_of_thresholds(owner, client):
    words = ["low", "mid", "high"]
    lines = [f"{words[i % 3]},{i / 2},{'no' if i % 3 == 0 and i % 7 else 'yes'}" for i in range(200)]
    text = "level,n,answer\n" + "\n".join(lines) + "\n"
    table = datasets.create(
        owner=owner,
        file=io.BytesIO(text.encode()),
        source_name="t.csv",
        name="t",
        reading=ReadOptions(given={"kinds": {"level": "ranks:low<mid<high"}}),
        choice=datasets.ColumnChoice(target="answer"),
    )
    model = trained_on(table, owner, depth=1)
    client.force_login(owner)
    page = client.get(f"/models/{model.pk}/?mode=tree&node=0&tab=question").content.decode()
    field = re.search(r"<label>At most <select id=\"threshold-try\".*?</select>", page, re.DOTALL)
    assert re.findall(r"<option value=\"([^\"]*)\"( selected)?>(\w+)", field[0]) == [
        ("1.5", " selected", "low"), ("2.5", "", "mid"),
    ]  # fmt: skip
    assert 'data-own="1.5"' in field[0]
    for condition in ("at most low", "above low"):
        assert f", {condition}</td>" in page
    rows = client.get(f"/models/{model.pk}/?mode=tree&node=0&tab=rows").content.decode()
    assert ">mid</td>" in rows
    assert labelled_ticks(model_file(model).tree.schema[0], 0.5, 3.0) == [(1.0, "low"), (2.0, "mid"), (3.0, "high")]


@pytest.mark.one_database
def test_groups_by_ranks_have_the_words(owner):
    words = ["low", "mid", "high"]
    lines = [f"{words[i % 3]},{words[i % 2]},{i / 2},{'no' if i % 3 == 0 else 'yes'}" for i in range(400)]
    table = datasets.create(
        owner=owner,
        file=io.BytesIO("\n".join(["level,other,n,answer", *lines, ""]).encode()),
        source_name="t.csv",
        name="t",
        reading=ReadOptions(given={"kinds": {"level": "ranks:low<mid<high", "other": "ranks:low<mid<high"}}),
        choice=datasets.ColumnChoice(target="answer"),
    )
    scene = scene_of(trained_on(table, owner, depth=1), owner)
    for column, names in (("level", ["low", "mid", "high"]), ("other", ["low", "mid"])):
        assert [g["label"] for g in groups.groups(scene, column, "training")["groups"]] == names


def test_group_columns_outside_training_parse_like_the_table(owner):
    """The columns that the training left out have ranks, dates, prices and truths, like features."""
    days = [f"{11 + 11 * (i % 2)}.{1 + i % 3:02d}.202{i // 200}" for i in range(400)]
    lines = [
        f"{i / 2};{['low', 'mid', 'high'][i % 2]};{days[i]};{i % 4},50 €;{['true', 'false'][i % 2]};T{i % 5};{'no' if i % 3 else 'yes'}"
        for i in range(400)
    ]
    for ignore in (["level", "day", "price", "flag", "town"], []):
        table = datasets.create(
            owner=owner,
            file=io.BytesIO("\n".join(["n;level;day;price;flag;town;answer", *lines, ""]).encode()),
            source_name="t.csv",
            name="t",
            reading=ReadOptions(given={"kinds": {"level": "ranks:low<mid<high"}}),
            choice=datasets.ColumnChoice(target="answer", ignore=ignore),
        )
        scene = scene_of(trained_on(table, owner, share=0, depth=1), owner)
        for column, labels in (
            ("level", ["low", "mid"]),
            ("day month", ["1", "2", "3"]),
            ("price", ["0.5", "1.5", "2.5", "3.5"]),
            ("flag", ["0", "1"]),
            ("town", ["T0", "T1", "T2", "T3", "T4"]),
        ):
            found = groups.groups(scene, column, "training")["groups"]
            assert [(group["label"], group["rows"]) for group in found] == [
                (label, pytest.approx(400 / len(labels), abs=1)) for label in labels
            ], (column, ignore)
