"""Decisions in a real browser: the page and its print."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from django.core.management import call_command
from django.test import Client
from playwright.sync_api import expect

from octweb.datasets import actions as datasets
from octweb.decide import actions
from octweb.registry.document.model_files import model_file
from octweb.registry.document.rows import rows_of
from octweb.registry.lifecycle import actions as registry
from tests.browser.accessible import violations
from tests.browser.pictures import folder, picture
from tests.browser.test_workspace import LONG, opened, small, stored  # noqa: F401  (fixtures)
from tests.browser.waiting import overflow
from tests.octweb.decide.conftest import table_model  # noqa: F401  (a fixture)
from tests.octweb.registry.api_explain_cases import explain
from trainer.explain.flip import Flipper
from trainer.explain.statistics import statistics_of_model
from trainer.training.run import TrainRequest, train
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf, grow
from trainer.tree.splits import Threshold

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
# title of the model, and also the name under which it is served
DEEP = "A deep survey of the households in all western regions, second round"


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(1440, False), (380, True)])
def test_decision_page_is_accessible_and_prints_on_one_page(opened, small, width, dark):  # noqa: F811
    page = opened(small, "decision/", width=width, dark=dark)
    page.wait_for_selector(".tree-picture svg")
    scale = (
        "(s => s.getBoundingClientRect().width / s.viewBox.baseVal.width)(document.querySelector('.tree-picture svg'))"
    )
    assert page.evaluate(scale) >= 10 / 11, "its letters have at least 10 px"
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    picture(page, f"decision-{width}-{'dark' if dark else 'light'}")
    row = page.input_value("#row-number")
    page.fill("#try-0", "0.25")
    assert page.input_value("#row-number") == "", "what is typed is explained, not the row that was chosen"
    page.click("#ask button.primary")
    page.wait_for_selector("h1 >> text=A typed row")
    page.wait_for_load_state()
    assert "0.25" not in page.url
    assert row not in page.url.partition("?")[2]
    pdf = page.pdf(prefer_css_page_size=True)
    assert pdf.count(b"/Type /Page\n") == 1
    if where := folder():
        (where / f"decision-{width}.pdf").write_bytes(pdf)
    with page.expect_download() as download:
        page.click('[data-decide="json"]')
    assert download.value.suggested_filename.endswith("-decision.json")


@pytest.fixture
def deep(owner, media):
    """Provide a tree of depth 8 over columns with long names.

    Each row meets up to eight splits, and many changes alter its answer.
    """
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 10))
    labels = np.where(rng.random(400) < 0.5, "agrees with the question", "does not agree with it")
    model = stored(owner, "Deep", [LONG.format(j) for j in range(10)], X, labels, depth=1)
    rows = rows_of(model)
    file = model_file(model)
    matrix = rows.matrix[rows.training]
    codes = rows.codes[rows.training]

    def chain(level: int) -> Draft:
        if level == 8:
            return DraftLeaf()
        return DraftBranch(split=Threshold(feature=level, threshold=0.9), left=chain(level + 1), right=DraftLeaf())

    tree = grow(chain(0), matrix, codes, schema=file.tree.schema, classes=file.tree.classes)
    document = replace(file, tree=tree, metrics={}).to_json()
    model = registry.register(owner=owner, document=document, dataset=model.dataset, title=DEEP)
    long = rows_of(model).numbers[
        tree.apply(rows_of(model).matrix) == max(v.id for v in tree.leaves if len(tree.path_to(v.id)) == 9)
    ]
    return model, int(long[0])


def test_a_long_path_prints_on_one_page(opened, deep):  # noqa: F811
    model, row = deep
    page = opened(model, f"decision/?row={row}")
    page.wait_for_selector(".tree-picture svg")
    assert page.locator(".stepc").count() == 8
    drawn = page.locator(".tree-picture text").all_text_contents()
    assert [k for k in range(8) if not any(f"_{k:02d}" in text or f"…{k:02d}" in text for text in drawn)] == []
    assert all(f"region_{k:02d}" in page.inner_text("#change table") for k in (0, 1, 5, 7))
    page.set_viewport_size({"width": 380, "height": 900})
    assert overflow(page) <= 0
    form = "(f => f.scrollWidth - f.clientWidth)(document.querySelector('#ask .scroll'))"
    assert page.evaluate(form) <= 0, "names, values and permissions stand below each other on a phone"
    assert page.evaluate(
        "[...document.querySelectorAll('#ask .valued label')].every((e) => e.scrollWidth <= e.clientWidth)"
    )
    page.set_viewport_size({"width": 1440, "height": 900})
    pdf = page.pdf(prefer_css_page_size=True)
    if where := folder():
        (where / "decision-deep.pdf").write_bytes(pdf)
    assert pdf.count(b"/Type /Page\n") == 1


@pytest.mark.slow
def test_the_questionnaire_by_keyboard_on_a_phone(opened, small):  # noqa: F811
    page = opened(small, "questionnaire/", width=380)
    tree = model_file(small).tree
    page.wait_for_selector("h1.q1")
    address = page.url
    asked = []
    picture(page, "questionnaire-380-light")
    while page.locator("form.b").count():
        assert violations(page) == []
        name = page.inner_text(".quest label").strip()
        asked.append(name)
        page.locator("[name=value]").focus()
        page.keyboard.type("0.5")
        page.keyboard.press("Enter")
        expect(page.locator(".q1:focus")).to_have_count(1)  # the new heading has the focus
    row = np.full((1, len(tree.schema)), 0.5)
    assert page.inner_text("h1.q1") == tree.classes[int(tree.predict(row)[0])]
    assert page.inner_text("[data-questionnaire-status]") == f"The answer is {page.inner_text('h1.q1')}"
    assert "It would be" in page.inner_text(".banner")
    assert violations(page) == []
    picture(page, "questionnaire-answer-380-light")
    page.reload()
    page.wait_for_selector("h1.q1")
    assert page.inner_text("h1.q1") == tree.classes[int(tree.predict(row)[0])], "the tab keeps what was answered"
    page.click("text=Start again")
    page.click("button.primary >> nth=-1")
    expect(page.locator("#q-trouble")).to_be_visible()
    expect(page.locator("[name=value]").first).to_have_accessible_description(re.compile("Please"))
    for _ in asked:
        if page.locator("form.b").count():
            page.click('button:has-text("I don’t know")')
    assert "%" in page.inner_text(".shares") or "same whatever" in page.inner_text(".b")
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    picture(page, "questionnaire-unknown-380-light")
    page.click(".given button >> nth=0")
    assert "Question 1" in page.inner_text(".b")
    assert page.url == address, "no answer comes into the address"


def test_the_questionnaire_needs_nothing_but_a_keyboard(opened, table_model):  # noqa: F811
    """At 390 px, Tab, arrows, space and Enter are enough for every split, "I don't know", back, a change and a restart."""
    page = opened(table_model, "questionnaire/", width=390)
    page.wait_for_selector("h1.q1")
    said = []

    def tab_to(words):
        for _ in range(60):
            page.keyboard.press("Tab")
            if words in page.evaluate(
                "(e => e.getAttribute('aria-label') ?? (e.name || e.innerText))(document.activeElement)"
            ):
                box = page.evaluate(
                    "(r => [r.left, r.right, r.height])(document.activeElement.getBoundingClientRect())"
                )
                assert box[0] >= 0
                assert box[1] <= 390
                return
        raise AssertionError(f"Tab does not reach {words!r}")

    def answer(text):
        tab_to("value")
        if page.evaluate("document.activeElement.type") == "radio":
            page.keyboard.press("Space")
            page.keyboard.press("ArrowDown")
        else:
            page.keyboard.type(text)
        page.keyboard.press("Enter")
        said.append(page.inner_text("[data-questionnaire-status]"))

    while page.locator("form.b").count():
        assert "Why we ask: if " in page.inner_text("#q-why")
        answer("4")
    certain = page.inner_text("h1.q1")
    assert said[-1] == f"The answer is {certain}"
    assert all(words.startswith("Question ") for words in said[:-1])
    assert "Size 1 is" in page.inner_text(".flip")
    assert "Not answered here: " in page.inner_text(".flip")
    tab_to("Back")
    page.keyboard.press("Enter")
    assert page.locator("form.b").count() == 1
    assert violations(page) == []
    while page.locator("form.b").count():
        tab_to("I don’t know")
        page.keyboard.press("Enter")
    assert "%" in page.inner_text(".shares") or "same whatever" in page.inner_text(".b")
    tab_to("Change ")
    page.keyboard.press("Enter")
    assert "Question 1 of at most" in page.inner_text(".b")
    picture(page, "questionnaire-390-keyboard")


def test_the_public_page_needs_no_account(windows, live_server, small, owner, staff):  # noqa: F811
    registry.ask_for_approval(small, by=owner)
    registry.approve(small, by=staff, reason="A test.")
    kept = actions.publish(small, by=owner, purpose="Pre-screening.", contact="a@example.org", show_training=False)
    page = windows.page(width=380, height=800, dark=True, bypass_csp=True)
    page.goto(f"{live_server.url}/public/{kept.key}/")
    page.wait_for_selector("h2.q1")
    assert violations(page) == []
    assert "training rows" not in page.inner_text("main")
    picture(page, "public-380-dark")
    for _ in range(3):
        if page.locator("form.b").count():
            page.fill("[name=value]", "-0.5")
            page.click("button.primary")
    assert "It would be" in page.inner_text(".banner")
    assert "training rows" not in page.inner_text("main")
    assert violations(page) == []
    assert page.context.cookies() == []


@pytest.fixture
def grades(owner, staff, media):
    """Provide a tree over whole grades and absences, with a public page.

    No split uses the column `shoe` of the table.
    """
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.integers(20, 91, 200), rng.integers(0, 12, 200), rng.integers(35, 47, 200)])
    labels = np.where(X[:, 0] > 55, "pass", "fail")
    text = "grade,absences,shoe,answer\n" + "".join(
        f"{a},{b},{c},{k}\n" for (a, b, c), k in zip(X, labels, strict=True)
    )
    dataset = datasets.create(
        owner=owner, file=io.BytesIO(text.encode()), source_name="g.csv", name="g", target="answer"
    )
    table, target = datasets.load(dataset)
    file = train(TrainRequest(table=table, labels=target, method="cart", parameters={"depth": 2})).model
    few = DraftBranch(split=Threshold(feature=1, threshold=5.5), left=DraftLeaf(label=1), right=DraftLeaf(label=0))
    low = DraftBranch(split=Threshold(feature=0, threshold=54.5), left=DraftLeaf(label=0), right=few)
    draft = DraftBranch(split=Threshold(feature=0, threshold=55.5), left=low, right=DraftLeaf(label=1))
    tree = grow(draft, table.matrix(), target.codes, schema=file.tree.schema, classes=file.tree.classes)
    document = replace(file, tree=tree, metrics={}).to_json()
    model = registry.register(owner=owner, document=document, dataset=dataset, title="Grades")
    registry.ask_for_approval(model, by=owner)
    registry.approve(model, by=staff, reason="A test.")
    actions.publish(model, by=owner, purpose="Advice.", contact="a@example.org", show_training=False)
    return model, text


def changes_without_browser(model, text, values, tmp_path):
    """Return the smallest change of `grade` and its size, from each call and command."""
    client = Client()
    client.force_login(model.owner)
    (record,) = explain(client, model, {"rows": [values]}).json()["explanations"]
    names = {c.name: j for j, c in enumerate(model_file(model).tree.schema)}
    form = {"typed": "1", "format": "json"} | {f"try-{names[name]}": value for name, value in values.items()}
    page = client.post(f"/models/{model.pk}/decision/", form).json()
    (tmp_path / "m.json").write_text(json.dumps(model_file(model).to_json()))
    (tmp_path / "train.csv").write_text(text)
    (tmp_path / "row.csv").write_text(f"{','.join(values)}\n{','.join(map(str, values.values()))}\n")
    call_command(
        "explain", str(tmp_path / "m.json"), str(tmp_path / "row.csv"), "--json", stdout=(out := io.StringIO())
    )
    (command,) = json.loads(out.getvalue().splitlines()[-1])
    found = {name: one["flip"] for name, one in {"API": record, "JSON": page, "explain": command}.items()}
    found = {name: (*flip["changes"]["grade"], round(flip["distance"], 3)) for name, flip in found.items()}
    for name, more in (("predict", {}), ("predict, units", {"units_from": str(tmp_path / "train.csv")})):
        output = tmp_path / "out.csv"
        call_command(
            "predict", str(tmp_path / "m.json"), str(tmp_path / "row.csv"), output=str(output), explain=True, **more
        )
        (row,) = csv.DictReader(output.open())
        found[name] = (*map(int, re.findall(r"\d+", row["flip"])), round(float(row["flip_distance"]), 3))
    tree = model_file(model).tree
    matrix = np.array([[values.get(c.name, 40) for c in tree.schema]], float)
    flip = Flipper(tree, statistics_of_model(tree)).find(matrix[0]).flip
    found["trainer"] = (int(matrix[0, names["grade"]]), int(flip.row[names["grade"]]), round(flip.distance, 3))
    return found


def answer_questions(page, values):
    """Answer the questionnaire and return what it says about the smallest change."""
    page.wait_for_selector(".quest .q1")
    while page.locator(".quest form.b").count():
        asked = page.inner_text(".quest .q1")
        page.fill(".quest [name=value]", str(values[re.fullmatch(r"What is (\w+)\?", asked)[1]]))
        page.click(".quest form.b button.primary")
    return page.inner_text(".quest .banner.flip")


def written_change(text):
    """Return the grade before and after the first change in a text."""
    to, at = re.search(r"grade (?:were )?(\d+(?:\.\d+)?) instead of (\d+)", " ".join(text.split())).groups()
    return float(at), float(to)


UNIT = 20  # unit of the grades; it is near their median absolute deviation
WHY = "depends on absences (3), which the path of this row does not ask."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "known", "asked"),
    [
        pytest.param({"grade": 55, "absences": 3}, 54, 54, id="all columns asked"),
        pytest.param({"grade": 70, "absences": 3}, 54, 54, id="unasked column idle"),
        pytest.param({"grade": 45, "absences": 3}, 55, 56, id="unasked column decides"),
    ],
)
def test_every_interface_shows_same_smallest_change(opened, grades, tmp_path, values, known, asked):  # noqa: F811
    """Interfaces that know the row agree with those that ask for it. If an unasked column decides, both say so."""
    model, text = grades
    at = values["grade"]
    assert set(changes_without_browser(model, text, values, tmp_path).values()) == {(at, known, abs(at - known) / UNIT)}
    page = opened(model, "decision/")
    for name, value in values.items():
        page.fill(f"#ask label:text-is('{name}') ~ input, #ask label:text-is('{name}') input", str(value))
    page.click("#ask button.primary")
    page.wait_for_selector("h1 >> text=A typed row")
    decision = page.inner_text("#change")
    assert written_change(decision) == (at, known)
    assert f"({abs(at - known)} {'more' if known > at else 'less'})" in " ".join(decision.split())
    assert page.inner_text("#change tbody.on tr >> nth=0 >> td >> nth=4") == f"{abs(at - known) / UNIT:g}"
    call_command("export", str(tmp_path / "m.json"), to="html", output=str(tmp_path / "m.html"))
    file = page.context.new_page()
    file.goto((tmp_path / "m.html").as_uri())
    for name, value in values.items():
        file.locator("#values").get_by_label(name, exact=True).fill(str(value))
    file.click("#typed button")
    carried = file.inner_text("#answer")
    assert written_change(carried) == (at, known)
    assert f"(size {abs(at - known) / UNIT:g};" in carried
    questions = {"file": answer_questions(file, values)}
    for name, address in (
        ("questionnaire", f"{page.base}questionnaire/"),
        ("public", f"{page.base.partition('/models/')[0]}/public/{actions.guidance_of(model).key}/"),
    ):
        page.goto(address)
        questions[name] = answer_questions(page, values)
    assert {name: written_change(words) for name, words in questions.items()} == dict.fromkeys(questions, (at, asked))
    unasked = known != asked
    assert (WHY in decision, WHY in carried) == (unasked, unasked)
    if unasked:
        assert all("Not answered here: absences." in words for words in questions.values())
