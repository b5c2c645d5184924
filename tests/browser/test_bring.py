"""Import of a foreign tree in a browser: choose a file, look at the tree, and request a better one."""

from __future__ import annotations

import io
import threading

import numpy as np
import pytest
from playwright.sync_api import expect
from sklearn.tree import DecisionTreeClassifier

from octweb.checking.comparing_work import ComparisonSupervisor
from octweb.checking.models import Comparison
from octweb.datasets import actions as datasets
from tests.browser.accessible import violations
from tests.browser.waiting import complaints, overflow
from trainer.convert import from_sklearn
from trainer.tree.export.pmml import to_pmml

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PASSWORD = "a long password"


@pytest.fixture
def folder(owner, media, tmp_path):
    """Provide a folder with tree.pmml, which has random thresholds, and text.pmml, which is not PMML.

    The rows are a data set of the owner.
    """
    rng = np.random.default_rng(11)
    X = np.column_stack([rng.integers(0, 9, 120), rng.normal(size=120).round(1)])
    y = np.where((X[:, 0] > 3) & (X[:, 1] > 0), "yes", "no")
    lines = ["width,height,edible", *(f"{a:g},{b},{label}" for (a, b), label in zip(X, y, strict=True))]
    text = io.BytesIO("\n".join(lines).encode())
    datasets.create(owner=owner, file=text, source_name="rows.csv", name="Mushrooms", target="edible")
    tree = DecisionTreeClassifier(max_leaf_nodes=3, max_depth=2, splitter="random", random_state=0).fit(X, y)
    found = from_sklearn(tree, feature_names=["width", "height"])
    (tmp_path / "tree.pmml").write_text(to_pmml(found, target="edible"))
    (tmp_path / "text.pmml").write_text("hello")
    return tmp_path


@pytest.fixture
def page(windows, live_server):
    """Provide a page of a signed-in user. Anything on the console fails the test."""
    found = windows.page(bypass_csp=True)
    trouble = []
    complaints(found, trouble)
    yield found
    assert trouble == []


@pytest.mark.slow
def test_imported_tree_is_shown_and_compared(page, live_server, folder):
    page.goto(f"{live_server.url}/accounts/login/")
    page.fill("#id_username", "olga")
    page.fill("#id_password", PASSWORD)
    page.click("main button.primary")
    page.wait_for_url(f"{live_server.url}/")
    page.goto(f"{live_server.url}/models/")
    page.click("text=Bring your own tree")
    assert violations(page) == []

    page.set_input_files("#file", str(folder / "text.pmml"))
    page.click("text=Make it a draft")
    page.wait_for_selector("text=neither PMML")
    assert violations(page) == []
    page.set_input_files("#file", str(folder / "tree.pmml"))
    page.fill("#title", "Our old tree")
    page.click("text=Make it a draft")
    page.wait_for_selector("h1 >> text=Our old tree")
    expect(page.locator("#hits .hit.leaf")).to_have_count(3)
    assert violations(page) == []

    page.click(".tabs >> text=Proof")
    page.wait_for_selector("#comparison-seconds")
    page.focus("#comparison-seconds")
    page.keyboard.press("Control+A")
    page.keyboard.type("30")
    page.keyboard.press("Enter")
    page.wait_for_selector("#comparison >> text=in the queue")
    assert violations(page) == []
    job = Comparison.objects.get()
    assert job.seconds == 30
    supervisor = ComparisonSupervisor(job_id=str(job.pk), worker="test", stopping=threading.Event())
    assert supervisor.run() == "succeeded"
    page.wait_for_selector("#comparison >> text=Not optimal: a better tree with as many leaves exists")
    expect(page.locator("#comparison >> text=0 (proved)")).to_be_visible()
    page.click("#comparison summary")
    expect(page.locator("#comparison pre")).to_contain_text("width")
    for width in (1440, 380):
        page.set_viewport_size({"width": width, "height": 900})
        assert violations(page) == []
        assert overflow(page) <= 0
