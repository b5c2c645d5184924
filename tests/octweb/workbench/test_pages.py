"""Workbench pages show the steps, and their forms create steps."""

from __future__ import annotations

import html
import json
import re
import uuid
from types import SimpleNamespace

import pytest
from django.template.loader import render_to_string

from octweb.jobs.models import RunStatus
from octweb.registry.document.model_files import model_file
from octweb.workbench import actions, page
from octweb.workbench.models import Step, StepKind, StepState, Workbench
from tests.octweb.runs.conftest import CSV
from trainer.editing.words import in_words
from trainer.tree.file import from_json
from trainer.tree.splits import Threshold

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]


@pytest.fixture
def web(client, owner):
    client.force_login(owner)
    return client


@pytest.mark.slow
def test_a_tree_is_opened_edited_priced_and_saved_on_the_page(web, model, serve):
    opened = web.post("/workbenches/new/", {"model": str(model.pk)})
    bench = Workbench.objects.get()
    address = f"/workbenches/{bench.pk}/"
    assert opened.url == address
    assert "Searching" in web.get(address).content.decode()
    serve(bench)
    page = web.get(address).content.decode()
    assert "Proved optimal" in page
    assert "hx-get" not in page
    unsaid = web.post(f"{address}edit/", {"at": "y", "verb": "leaf", "label": "no"}, follow=True)
    assert "Say why this leaf is to have this class" in unsaid.content.decode()
    web.post(f"{address}edit/", {"at": "y", "verb": "leaf", "label": "no", "reason": "the panel <decided> so"})
    web.post(f"{address}edit/", {"at": "root", "verb": "forbid", "column": "colour"})
    bench = Workbench.objects.get()
    assert actions.current_wishes(bench) == ["leaf y no", "forbid root colour"]
    serve(bench)
    page = web.get(f"{address}?at=n").content.decode()
    assert "Best with 2 wishes" in page
    assert "After yes: always “class no”" in page
    assert "because: the panel &lt;decided&gt; so" in page
    web.post(
        f"{address}edit/", {"at": "root", "verb": "wish", "wish": "forbid root colour", "reason": "a proxy of age"}
    )
    bench = Workbench.objects.get()
    assert actions.current_wishes(bench) == ["leaf y no", "forbid root colour"]
    assert set(actions.current_reasons(bench).values()) == {"the panel <decided> so", "a proxy of age"}
    web.post(f"{address}move/", {"to": "undo"})
    web.post(f"{address}prices/", {"at": "n"})
    serve(Workbench.objects.get())
    assert "Ask this" in web.get(f"{address}?at=n").content.decode()
    web.post(f"{address}edit/", {"at": "root", "drop": "leaf y no"})
    assert actions.current_wishes(Workbench.objects.get()) == ["forbid root colour"]
    web.post(f"{address}move/", {"to": "undo"})
    assert actions.current_wishes(Workbench.objects.get()) == ["leaf y no", "forbid root colour"]
    looked = web.post(f"{address}unseen/", follow=True).content.decode()
    assert re.search(
        r"unseen rows are right \([0-9.]+ %\)\. Always “[a-z]+” is right for [0-9.]+ %\.", html.unescape(looked)
    )
    assert "checked once" in looked
    saved = web.post(f"{address}save/", follow=True)
    assert saved.status_code == 200
    assert "version 2" in saved.content.decode()
    proof = web.get(f"{saved.redirect_chain[-1][0]}?mode=proof").content.decode()
    assert "Wishes that the tree keeps" in proof
    assert "the panel &lt;decided&gt; so" in proof
    assert web.get("/models/drafts/").status_code == 200


def test_a_threshold_of_the_model_page_is_held_at_its_node(web, model, serve):
    """The splits above are held, too, so that the node keeps its rows. Otherwise the tree is the model's."""
    tree = model_file(model).tree
    node = next(v for v in tree.branches if v.id and isinstance(v.split, Threshold))
    above = tree.nodes[tree.parents[node.id]]
    other = node.split.threshold + 1.0
    sent = {"model": str(model.pk), "node": str(node.id), "threshold": repr(other)}
    opened = web.post("/workbenches/new/", sent)
    bench = Workbench.objects.get()
    place = "y" if above.left == node.id else "n"
    assert opened.url == f"/workbenches/{bench.pk}/?at={place}"
    column = tree.schema[node.split.feature].name
    held = [f"ask root {above.split.wish(tree.schema)}", f"ask {place} {column} <= {other!r}"]
    assert actions.current_wishes(bench) == held
    serve(bench)
    assert "Best with 2 wishes" in web.get(opened.url).content.decode()
    first, second = bench.steps.order_by("number")
    assert from_json(json.loads(first.document)).tree == tree
    found = from_json(json.loads(second.document)).tree
    there = found.nodes[found.nodes[0].left if place == "y" else found.nodes[0].right]
    assert there.rows == node.rows
    assert there.split.threshold == other


def test_chosen_node_is_selected_in_a_new_workbench(web, model, serve):
    tree = model_file(model).tree
    leaf = tree.nodes[tree.nodes[0].right]
    while not leaf.is_leaf:
        leaf = tree.nodes[leaf.left]
    text = web.get(f"/models/{model.pk}/?mode=tree&node={leaf.id}").content.decode()
    assert re.search(rf'name="node"\s+value="{leaf.id}"><button[^>]+>Edit this node<', text)
    opened = web.post("/workbenches/new/", {"model": str(model.pk), "node": str(leaf.id)})
    bench = Workbench.objects.get()
    place = actions.place_of(tree, leaf.id)
    assert (place[0], len(place)) == ("n", len(tree.path_to(leaf.id)) - 1)
    assert opened.url == f"/workbenches/{bench.pk}/?at={place}"
    serve(bench)
    assert page.find(page.step_tree(bench.steps.get(), [], place), place).rows == leaf.rows
    unknown = web.post("/workbenches/new/", {"model": str(model.pk), "node": "999"})
    assert unknown.url.endswith("/")


def test_wishes_are_written_as_questions_are(web, model, owner):
    bench = actions.open_for(owner=owner, model=model)
    actions.edit(bench, add=["ask root width <= -0.5"])
    text = web.get(f"/workbenches/{bench.pk}/").content.decode()
    assert text.count("At the root: ask width ≤ −0.5") >= 2, "among the wishes and in the history"
    assert 'value="ask root width &lt;= -0.5"' in text, "the wish itself stays as it is typed"
    assert in_words("ask y a <= b <= 1e-05") == "After yes: ask a <= b ≤ 1e-05"


@pytest.mark.parametrize(
    "sent",
    [
        {"node": "0", "threshold": "nan"},
        {"node": "0", "threshold": "a few"},
        {"node": "999", "threshold": "1"},
        {"threshold": "1"},
    ],
)
def test_invalid_threshold_opens_no_workbench(web, model, sent):
    answer = web.post("/workbenches/new/", {"model": str(model.pk), **sent}, follow=True)
    assert answer.redirect_chain[-1][0] == f"/models/{model.pk}/"
    assert "This question has no threshold to hold, or the threshold is not a number." in answer.content.decode()
    assert not Workbench.objects.exists()


def test_threshold_cannot_be_held_in_model_of_other_owner(client, stranger, model):
    client.force_login(stranger)
    sent = {"model": str(model.pk), "node": "0", "threshold": "1"}
    assert client.post("/workbenches/new/", sent).status_code == 404
    assert not Workbench.objects.exists()


def test_depth_limit_is_not_worded_as_a_question(web, model, owner, serve):
    """The table has a column named height, so "height ≤ 1" on a card would be a question."""
    bench = actions.open_for(owner=owner, model=model)
    actions.edit(bench, wishes=["depth root 1"])
    serve(bench)
    page = web.get(f"/workbenches/{bench.pk}/").content.decode()
    assert "1 at most 1 more" in page
    assert "height ≤ 1" not in page


def test_a_wish_is_made_by_menus_and_reads_in_words(web, model, serve):
    bench = actions.open_for(owner=model.owner, model=model)
    serve(bench)
    tree = page.step_tree(bench.steps.get(), [], None)
    address = f"/workbenches/{bench.pk}/"
    assert f">{page.places_in_words(tree)['n']}</option>" in html.unescape(web.get(address).content.decode())
    web.post(f"{address}edit/", {"at": "n", "verb": "column", "column": "width"})
    bench.refresh_from_db()
    assert actions.current_wishes(bench) == ["ask n width"]
    assert f"If “{tree.text}” is no: ask width" in html.unescape(web.get(address).content.decode())


def test_a_wish_may_be_typed_with_the_sign_of_pages(web, model, owner):
    bench = actions.open_for(owner=owner, model=model)
    web.post(f"/workbenches/{bench.pk}/edit/", {"at": "root", "verb": "wish", "wish": "ask root width ≤ 2"})
    bench.refresh_from_db()
    assert actions.current_wishes(bench) == ["ask root width <= 2"]


def test_contradiction_lists_wishes_and_remedies(web, model, owner, serve):
    bench = actions.open_for(owner=owner, model=model)
    actions.edit(bench, wishes=["leaf root", "ask n width"])
    serve(bench)
    answer = web.get(f"/workbenches/{bench.pk}/")
    page = answer.content.decode()
    assert "No tree keeps all 2 wishes" in page
    assert "can be kept: <b>1 and 2</b>." in page
    assert answer.context["tree"].tags == []  # the draft satisfies neither constraint
    assert page.count("Take back ") >= 2
    assert "last good draft" in page


@pytest.mark.slow
def test_all_good_trees_are_counted_on_their_page(web, model, owner, serve):
    bench = actions.open_for(owner=owner, model=model)
    address = f"/workbenches/{bench.pk}/good-trees/"
    assert "Nothing is counted yet" in web.get(address).content.decode()
    web.post(address, {"slack": "3", "max_leaves": "4", "must": ["width"]})
    serve(bench)
    page = web.get(address).content.decode()
    assert "All counted" in page
    assert "objective" in page
    assert "lost when shuffled" in page
    assert "not known" not in page
    rows = bench.steps.filter(kind=StepKind.GOOD).last().result["rows"]
    assert f"The answer for {rows['depends']} of {rows['of']} rows depends on which good tree was" in " ".join(
        page.split()
    )
    assert f'<td class="num">{rows["listed"][0]["row"]}</td>' in page
    for row in rows["listed"]:  # lines are counted as in an editor, from 1 with the header
        assert CSV.splitlines()[row["row"] - 1].endswith(f",{row['actual']}")
    assert bench.steps.filter(kind=StepKind.GOOD).last().request["must"] == ["width"]
    assert "Count without: at most 4 leaves" in page
    assert "Count without: asking width" in page
    left = [line["count"] for line in bench.steps.filter(kind=StepKind.GOOD).last().result["filters"]]
    assert f'<td>… and at most 4 leaves</td><td class="num">{left[2]:,}</td>' in page
    for name in ("tolerance", "questions", "good-trees/1", "good-trees/2"):
        assert f"figures/{name}/" in page
        assert web.get(f"/api/v1/workbenches/{bench.pk}/figures/{name}/").json()["data"]
    assert web.get(f"/api/v1/workbenches/{bench.pk}/figures/good-trees/99/").status_code == 404
    step = bench.steps.filter(kind=StepKind.GOOD).last()
    differ = step.result["differ"]
    assert sum(1 + len(card["alike"]) for card in web.get(address).context["cards"]) == len(step.result["trees"])
    first = step.result["trees"][0]
    first["objective"] = step.result["optimum"] - 0.04 / rows["of"]  # worse by a small leaf penalty
    step.save()
    assert "under 0.1 rows worse" in web.get(address).content.decode()
    several = " ".join(web.get(f"{address}?a=2&b=3").content.decode().split())
    words = f"They answer {differ[1][2]} of" if differ[1][2] else "They give the same answer for every training row"
    assert words in several
    assert web.get(f"{address}?a=0&b=x").status_code == 200
    every = bench.steps.filter(kind=StepKind.GOOD).last().result["count"]
    more = {
        "difference": "0.3",
        "groups": "colour",
        "rate": "opportunity",
        "favoured": "no",
        "agree_rows": "all",
        "recalls": "no: 0.1",
    }
    web.post(address, {"slack": "3"} | more)
    serve(bench)
    step = bench.steps.filter(kind=StepKind.GOOD).last()
    assert step.request["agree_step"] == 1
    assert step.request["recalls"] == {"no": "0.1"}
    assert 1 <= step.result["count"] < every or step.result["count"] == 0
    page = web.get(address).content.decode()
    assert 'value="0.3"' in page
    assert f"answer as the tree of this workbench on {step.result['agree_rows']} rows" in " ".join(page.split())
    assert 'value="no: 0.1"' in page
    Step.objects.filter(pk=step.pk).update(
        state=StepState.WORKING, result={**step.result, "status": "counting", "answers": None}
    )
    Workbench.objects.filter(pk=bench.pk).update(status=RunStatus.RUNNING)
    page = web.get(address).content.decode()
    assert "how much they rely on each column.</span>" in page
    assert "Not all was counted" not in page
    assert "hx-get" in page
    Step.objects.filter(pk=step.pk).update(state=StepState.DONE, result=step.result)
    Workbench.objects.filter(pk=bench.pk).update(status=RunStatus.SUCCEEDED)
    web.post(address, {"slack": "3", "agree_rows": "999999"})
    serve(bench)
    page = web.get(address).content.decode()
    assert 'id="agree_rows-error"' in page
    assert "is not a range of lines" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "entry", "words"),
    [
        ("slack_rows", "much", "is not a number"),
        ("slack_rows", "-1", "ust not be negative"),
        ("max_leaves", "²", "is not a whole number of leaves"),
        ("max_leaves", "9" * 5000, "is not a whole number of leaves"),
        ("max_leaves", "0", "is not a whole number of leaves"),
        ("recalls", "no", "has no minimum recall"),
        ("recalls", "no: 1.5", "is more than 1. Write a share"),
        ("recalls", "nope: 0.9", "&#x27;nope&#x27; is not a class. Did you mean &#x27;no&#x27;?"),
        ("must", "widht", "Did you mean &#x27;width&#x27;?"),
        ("without", "widht", "Did you mean &#x27;width&#x27;?"),
        ("agree_rows", "²", "is not a line number"),
        ("agree_rows", "5-x", "is not a line number"),
        ("difference", "0.1", "Choose the column"),
        ("groups", "colour", "Say how much"),
    ],
)
def test_a_wrong_entry_is_refused_beside_its_field_and_kept(web, model, owner, field, entry, words):
    bench = actions.open_for(owner=owner, model=model)
    answer = web.post(f"/workbenches/{bench.pk}/good-trees/", {field: entry, "max_leaves": "5"} | {field: entry})
    page = answer.content.decode()
    assert answer.status_code == 200
    assert words in page
    assert page.count("autofocus") == 1
    assert page.count('aria-invalid="true"') == 1
    kept = field in ("must", "without") or f'value="{entry}"' in page or f"<option selected>{entry}</option>" in page
    assert kept  # except that a list of columns cannot show one that does not exist
    assert not bench.steps.filter(kind=StepKind.GOOD).exists()


def test_columns_that_are_asked_and_left_out_at_once_are_refused(web, model, owner):
    bench = actions.open_for(owner=owner, model=model)
    answer = web.post(f"/workbenches/{bench.pk}/good-trees/", {"must": ["width"], "without": ["width", "colour"]})
    assert answer.status_code == 200
    assert "cannot be asked and left out at once" in answer.content.decode()


def test_strangers_find_no_workbench(client, stranger, model, owner):
    bench = actions.open_for(owner=owner, model=model)
    client.force_login(stranger)
    for path in ("", "live/", "good-trees/"):
        assert client.get(f"/workbenches/{bench.pk}/{path}").status_code == 404
    for path in ("edit/", "move/", "prices/", "save/"):
        assert client.post(f"/workbenches/{bench.pk}/{path}").status_code == 404


def test_the_model_page_has_a_tab_with_prices(web, model, serve):
    address = f"/models/{model.pk}/?mode=tree&node=0&tab=alternatives"
    assert "Not computed yet" in web.get(address).content.decode()
    asked = web.post("/workbenches/of-model/", {"model": str(model.pk), "node": "0"})
    assert asked.url == address
    assert "searched" in web.get(address).content.decode()
    serve(Workbench.objects.get())
    page = web.get(address).content.decode()
    assert "+0.0" in page
    assert "Open the workbench" in page
    assert Workbench.objects.count() == 1
    web.post("/workbenches/of-model/", {"model": str(model.pk), "node": "1"})
    assert Workbench.objects.count() == 1
    assert web.post("/workbenches/of-model/", {"model": str(model.pk), "node": "99"}).status_code == 404


@pytest.mark.slow
def test_subsets_are_asked_for_and_kept_together_by_ticks(web, owner, dataset, serve):
    bench = actions.open_for(owner=owner, dataset=dataset, method="odt", parameters={"depth": 2})
    address = f"/workbenches/{bench.pk}/"
    web.post(f"{address}edit/", {"at": "root", "verb": "subset", "column": "colour", "category": ["red"]})
    two = {"at": "y", "verb": "together", "column": "colour", "category": ["green", "blue"]}
    web.post(f"{address}edit/", two)
    assert actions.current_wishes(Workbench.objects.get()) == [
        "ask root colour in red",
        "together y colour in green|blue",
    ]
    serve(Workbench.objects.get())
    page = " ".join(web.get(f"{address}?at=root").content.decode().split())
    assert "Best with 2 wishes" in page
    assert "After yes and below: never part green and blue of colour" in page
    assert 'value="red" checked' in page
    assert 'value="blue">' in page
    assert "Never separate these, here and below" in page
    for bad in ({**two, "category": ["red"]}, {**two, "category": []}):
        assert "Tick two or more" in web.post(f"{address}edit/", bad, follow=True).content.decode()
    web.post(f"{address}edit/", {"at": "y", "verb": "avoid", "column": "width"})
    assert actions.current_wishes(Workbench.objects.get())[-1] == "avoid y width"
    serve(Workbench.objects.get())
    web.post(f"{address}prices/", {"at": "root"})
    serve(Workbench.objects.get())
    page = web.get(f"{address}?at=root").content.decode()
    assert "After yes: do not ask width, it may be asked below" in page
    assert "Ask this" in page
    assert "Good trees can be counted only for trees of the exact search" in page


@pytest.mark.parametrize("page", ["", "good-trees/", "live/"])
def test_page_of_a_stalled_workbench_offers_to_continue(web, model, page):
    """Workers died too often. Viewing the page changes nothing, and its button queues the workbench."""
    bench = actions.open_for(owner=model.owner, model=model)
    actions.ask_good_trees(bench, {"slack": "0.1"})
    Workbench.objects.update(status="failed", error="The worker died 3 times.")
    text = web.get(f"/workbenches/{bench.pk}/{page}").content.decode()
    assert "The search stopped without an answer.</b> The worker died 3 times." in text
    assert "hx-get" not in text
    assert Workbench.objects.get().status == "failed"
    web.post(f"/workbenches/{bench.pk}/move/", {"to": "continue"})
    assert Workbench.objects.get().status == "queued"


@pytest.mark.slow
@pytest.mark.parametrize("user", ["owner", "staff"])
def test_each_compute_uses_the_same_workbench(client, model, serve, user, request):
    client.force_login(request.getfixturevalue(user))
    for node in ("0", "0", "1"):  # the second press finds the search of the first one
        client.post("/workbenches/of-model/", {"model": str(model.pk), "node": node})
    bench = Workbench.objects.get()
    assert bench.steps.filter(kind=StepKind.PRICES).count() == 2
    tab = f"/models/{model.pk}/node/?node=0&tab=alternatives"
    assert "hx-get=" in client.get(tab).content.decode()
    serve(bench)
    text = client.get(tab).content.decode()
    assert "hx-get=" not in text
    assert "<th>price, rows</th>" in text


def test_alternatives_tab_does_not_wake_its_workbench(web, model):
    web.post("/workbenches/of-model/", {"model": str(model.pk), "node": "0"})
    Workbench.objects.update(status="failed", error="The worker died 3 times.")
    text = web.get(f"/models/{model.pk}/?mode=tree&node=0&tab=alternatives").content.decode()
    assert ">Compute</button>" in text
    assert Workbench.objects.get().status == "failed"


TYPO = "no sex anywhere please"


def test_unreadable_wish_is_refused_at_its_field(web, model, serve):
    bench = actions.open_for(owner=model.owner, model=model)
    serve(bench)
    address = f"/workbenches/{bench.pk}/"
    answer = web.post(f"{address}edit/", {"at": "root", "verb": "wish", "wish": "forbid root colr"})
    page = " ".join(answer.content.decode().split())
    assert answer.status_code == 422
    assert 'id="wish-error"' in page
    assert "Did you mean &#x27;colour&#x27;?" in page
    assert 'value="forbid root colr"' in page
    bench.refresh_from_db()
    assert bench.position == 1
    assert bench.steps.count() == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"verb": "threshold", "column": "width", "value": "wide"}, "value"),
        ({"verb": "depth", "value": "few"}, "height"),
        ({"verb": "forbid", "column": "colr"}, "wish"),
        ({"verb": "pin", "wish": TYPO}, "wish"),
        ({"verb": "wish", "wish": "together root colour in red|blue"}, "wish"),
        ({"verb": "wish", "wish": "hello"}, "wish"),
        ({"verb": "leaf", "label": "maybe", "reason": "so"}, "wish"),
    ],
)
def test_each_edit_that_is_refused_changes_nothing(web, model, serve, form, field):
    bench = actions.open_for(owner=model.owner, model=model)
    serve(bench)
    tree = page.step_tree(bench.steps.get(), [], None)
    at = tree.name if tree.threshold or field != "value" else "y"
    answer = web.post(f"/workbenches/{bench.pk}/edit/", {"at": at} | form)
    assert answer.status_code == 422
    assert f'id="{field}-error"' in answer.content.decode()
    assert bench.steps.count() == 1


@pytest.mark.slow
def test_workbench_with_a_stored_bad_wish_recovers(web, model, serve):
    """Earlier versions stored such a wish, and each further step failed."""
    bench = actions.open_for(owner=model.owner, model=model)
    serve(bench)
    actions.ask(bench, StepKind.COMPLETE, wishes=["forbid root width", TYPO, "hello"])
    serve(bench)
    address = f"/workbenches/{bench.pk}/"
    page = " ".join(web.get(address).content.decode().split())
    assert page.count("Refused, it never held") == 2
    web.post(f"{address}edit/", {"at": "root", "drop": TYPO})
    bench.refresh_from_db()
    assert actions.current_wishes(bench) == ["forbid root width"]
    serve(bench)
    assert actions.current(bench).state == StepState.DONE


def test_hold_of_ranks_is_a_menu_of_words():
    place = page.PageNode(
        place="",
        rows=9,
        text="grade is at most low",
        bar=[],
        classes=("no", "yes"),
        column="grade",
        threshold="1.5",
        ranks=("low", "mid", "high"),
        yes=None,
        no=None,
    )
    place.yes = place.no = page.PageNode(place="y", rows=1, text="no", bar=[], classes=("no", "yes"))
    record = {"column": "grade", "values": ["1", "2"], "counts": [[3, 0], [0, 3], [0, 3]], "empty": [0, 0]}
    step = SimpleNamespace(result={"spreads": {"root": record}})
    spread = page.spread(step, place)
    assert (spread["values"], spread["now"]) == (["1.5", "2"], 0)
    context = {
        "place": place,
        "spread": spread,
        "ranks": page.rank_choices(place),
        "bench": SimpleNamespace(pk=uuid.uuid4()),
    }
    text = render_to_string("workbench/bench/_chosen.html", context)
    assert re.findall(r'<option value="([^"]*)"( selected)?>(\w+)', text) == [
        ("1.5", " selected", "low"),
        ("2", "", "mid"),
    ]
    assert '<input id="value"' not in text
