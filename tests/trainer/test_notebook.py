"""Notebooks and shells: trees as HTML and Plotly figures, a progress bar, and Ctrl-C that keeps the tree."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from docs.run_notebooks import run
from tests.conftest import ROOT
from tests.octweb.figures.specimens import tree_of
from trainer import make_classifier
from trainer.certificate import Progress, Status
from trainer.errors import ParameterError
from trainer.sklearn_api import notebook
from trainer.sklearn_api.notebook import StoppedWarning, describe_progress, progress_bars
from trainer.tree.describe import split_text
from trainer.tree.render.html import tree_html
from trainer.tree.render.paper import hover_text
from trainer.tree.render.tokens import LIGHT, resolve_tokens

X = np.array([[i, i % 7] for i in range(60)], float)
Y = np.where(X[:, 0] > 29, "late", "early")


class _Tags(HTMLParser):
    """Opened and closed elements of a piece of HTML, and its URLs."""

    VOID = ("rect", "path")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open = []
        self.addresses = []
        self.seen = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.addresses += [v for k, v in attributes if k in {"src", "href"} or (v and "url(" in v)]
        self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def person(monkeypatch):
    """Act as if a user typed the statements and had not stopped a training recently."""
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    monkeypatch.setattr(notebook, "_stopped_at", -1e9)
    monkeypatch.setattr(notebook, "BAR_DELAY_SECONDS", 0.0)


def test_colours_match_the_pages():
    light = (ROOT / "static" / "tokens.css").read_text().split("@media")[0]
    known = dict(re.findall(r"--([a-z0-9-]+):\s*(#[0-9a-f]+)", light))
    assert {name: known[name] for name in LIGHT} == LIGHT
    with pytest.raises(KeyError):
        resolve_tokens({"a": ["var(--no-such-colour)"]})


@pytest.mark.parametrize("classes", [2, 5, 25])
@pytest.mark.parametrize("leaves", [1, 4, 40])
def test_a_tree_shows_itself_without_a_network(leaves, classes):
    tree = tree_of(leaves, classes=classes)
    text = tree._repr_html_()
    found = _Tags(text)
    assert found.open == []
    assert found.addresses == []
    assert "script" not in found.seen
    # The root's card has its whole rule as a title, and the rules as text contain every split.
    assert hover_text(tree, tree.nodes[0]) in unescape(text)
    plain = unescape(text)
    for node in tree.nodes:
        if node.split is not None:
            assert split_text(node.split, tree.schema) in plain


def test_the_line_of_a_tree():
    assert repr(tree_of(4)) == "<Tree: 4 leaves, depth 3, 4 columns, 3 classes>"


def test_an_estimator_hands_out_a_workbench():
    estimator = make_classifier("exact", depth=2, leaf_penalty=0.01).fit(X, Y)
    bench = estimator.workbench(X, np.where(X[:, 1] > 3, "p", "q"))
    assert estimator.classes_.tolist() == ["early", "late"]
    assert bench.complete().optimal
    assert not bench.complete(["ask root x0", "forbid root x0"]).found
    assert not hasattr(make_classifier("cart"), "workbench")
    # The limits of the estimator also bind its completions.
    small = make_classifier("exact", depth=2, max_leaves=1).workbench(X, Y)
    assert small.tree(small.complete().tree).n_leaves == 1 < bench.tree(bench.complete().tree).n_leaves
    with pytest.raises(ParameterError, match="without limits on leaves"):
        small.good_trees(slack="0.1")
    numeric = make_classifier("exact-numeric", depth=2).workbench(X, Y)
    assert numeric.complete(["depth root 1"]).optimal
    assert not hasattr(numeric, "good_trees")
    subsets = make_classifier("odt", depth=2).workbench(X, Y)
    assert subsets.complete(["depth root 1"]).optimal
    uneven = make_classifier("odt", topology="imbalanced").workbench(X, Y)
    assert uneven.complete(["depth root 1"]).optimal


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_of_the_documents_runs(path, tmp_path, monkeypatch):
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("OCTWEB_WARM", "0")  # the notebook calls few kernels, so its server need not compile them all
    text = path.read_text()
    assert str(ROOT) not in text
    found = run(path)
    assert found.cells
    # The stored notebook must be the output of these cells.
    stored = json.loads(text)["cells"]
    assert [c["source"] if isinstance(c["source"], str) else "".join(c["source"]) for c in stored] == [
        c["source"] for c in found.cells
    ]
    assert all(c.get("execution_count") for c in stored if c["cell_type"] == "code")


def test_names_are_text():
    from dataclasses import replace

    tree = replace(tree_of(4, classes=2), classes=("<script>alert(1)</script>", 'x" onload="y'))
    found = _Tags(tree_html(tree, ["<b>claim</b>"]))
    assert "script" not in found.seen
    assert "b" not in found.seen


def test_the_figure_needs_no_page():
    figure = tree_of(6).plot()
    assert type(figure).__name__ == "Figure"
    assert "var(--" not in figure.to_json()
    assert json.loads(figure.to_json())["data"]


def test_an_estimator_shows_its_tree_and_the_claim():
    estimator = make_classifier("exact-numeric", depth=2)
    assert "octweb-tree" not in estimator._repr_mimebundle_()["text/html"]
    shown = unescape(estimator.fit(X, Y)._repr_mimebundle_()["text/html"])
    assert "Proved optimal" in shown
    assert estimator.certificate_.scope in shown
    assert "60 of 60 training rows are right, 2 leaves" in shown
    assert "Heuristic" in make_classifier("cart", depth=2).fit(X, Y)._repr_mimebundle_()["text/html"]


def test_a_bar_says_what_is_known(person, monkeypatch, capsys):
    pytest.importorskip("tqdm")
    make_classifier("exact-numeric", depth=2).fit(X, Y)
    errors = capsys.readouterr().err
    assert "exact-numeric" in errors
    assert "incumbent" in errors
    progress_bars(False)
    make_classifier("exact-numeric", depth=2).fit(X, Y)
    progress_bars(True)
    monkeypatch.setattr("trainer.sklearn_api.notebook.importlib.util.find_spec", lambda name: None)
    make_classifier("exact-numeric", depth=2).fit(X, Y)
    assert capsys.readouterr().err == ""


def test_progress_bar_is_hidden_in_scripts(capsys):
    make_classifier("exact-numeric", depth=2).fit(X, Y)
    assert capsys.readouterr().err == ""


def test_bar_labels():
    assert describe_progress(Progress(t=1, phase="search")) == "search"
    some = Progress(t=1, phase="search", incumbent=0.9533, bound=0.98, gap=0.028)
    assert describe_progress(some) == "search, incumbent 0.9533, bound 0.98, gap 2.8 %"


def hard():
    """Return rows and classes for which a search takes far longer than any test."""
    r = np.random.default_rng(3)
    return r.normal(size=(2_000, 12)), r.integers(0, 2, 2_000)


@pytest.fixture
def pressed():
    """Provide a function that presses Ctrl-C every half second, `times` times at most, until the test is over."""
    # a shell lets jobs in the background ignore this signal
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    over = threading.Event()
    threads = []

    def press(times=1):
        def work():
            for _ in range(times):
                if over.wait(0.5):
                    return
                os.kill(os.getpid(), signal.SIGINT)

        threads.append(threading.Thread(target=work))
        threads[-1].start()

    yield press
    over.set()
    for thread in threads:
        thread.join()
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_keeps_the_tree(person, pressed):
    data, labels = hard()
    usual = signal.getsignal(signal.SIGINT)
    pressed()
    with pytest.warns(StoppedWarning, match="Ctrl-C"):
        estimator = make_classifier("exact-numeric", depth=4, time_limit=300).fit(data, labels)
    assert signal.getsignal(signal.SIGINT) is usual
    said = estimator.certificate_
    assert said.status is Status.CANCELLED
    assert said.bound > said.objective >= 0.5
    assert not said.proved_optimal
    assert (estimator.predict(data) == labels).mean() == pytest.approx(said.correct / said.n)


def test_ctrl_c_ends_a_loop_of_trainings(person, pressed):
    data, labels = hard()
    pressed()
    start = time.monotonic()
    with pytest.warns(StoppedWarning), pytest.raises(KeyboardInterrupt):
        cross_val_score(make_classifier("exact-numeric", depth=4, time_limit=300), data, labels, cv=5)
    assert time.monotonic() - start < 200


def test_later_training_of_user_is_not_stopped(person, monkeypatch):
    monkeypatch.setattr(notebook, "_stopped_at", time.monotonic())
    with pytest.raises(KeyboardInterrupt):
        make_classifier("cart", depth=2).fit(X, Y)
    monkeypatch.setattr(notebook, "_stopped_at", time.monotonic() - notebook.REPEAT_SECONDS)
    assert make_classifier("cart", depth=2).fit(X, Y).tree_.n_leaves == 2


def test_ctrl_c_in_a_script_raises_keyboard_interrupt(pressed):
    data, labels = hard()
    pressed()
    with pytest.raises(KeyboardInterrupt):
        make_classifier("exact-numeric", depth=4, time_limit=300).fit(data, labels)
