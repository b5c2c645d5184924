"""The standalone HTML file in a browser without a network predicts every row like the kernel."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from django.conf import settings

from tests.browser.accessible import violations
from tests.browser.pictures import picture
from tests.browser.waiting import complaints
from trainer.data.column_statistics import statistics
from trainer.data.formats.csv_file import read_csv
from trainer.data.reader import rows_for_model
from trainer.explain.flip import Flipper
from trainer.explain.permission import permissions
from trainer.explain.statistics import coarse
from trainer.model_page import Subject, to_html
from trainer.table import MISSING_CATEGORY, ColumnKind, ColumnSchema, MissingPolicy
from trainer.tree.file import ModelFile
from trainer.tree.nodes import DraftBranch, DraftLeaf, grow
from trainer.tree.splits import Interval, Linear, Subset, Threshold

pytestmark = pytest.mark.browser
SCHEMA = (
    ColumnSchema(name="score", kind=ColumnKind.NUMERIC, unit="points"),
    ColumnSchema(name='age, "years"', kind=ColumnKind.NUMERIC),
    ColumnSchema(name="member", kind=ColumnKind.BINARY),
    ColumnSchema(
        name="town", kind=ColumnKind.CATEGORICAL, categories=("north", "söuth", "<east>", MISSING_CATEGORY), missing=MissingPolicy.CATEGORY
    ),
    ColumnSchema(name="plan", kind=ColumnKind.CATEGORICAL, categories=("a", "b", "NA")),
)  # fmt: skip
TRAINING = 400
RANDOM = 10_000


@pytest.fixture(scope="module")
def large():
    """Provide a tree of 64 leaves with splits of every kind, and its training rows."""
    rng = np.random.default_rng(8)
    rows = drawn(rng, TRAINING)
    kinds = [
        lambda: Threshold(feature=0, threshold=float(rng.choice(rows[:, 0]))),
        lambda: Interval(feature=1, low=float(rng.normal(20, 3)), high=40.0),
        lambda: Subset(feature=4, codes=tuple(sorted(rng.choice(3, 2, replace=False).tolist()))),
        lambda: Threshold(feature=2, threshold=0.5),
        lambda: Linear(features=(0, 1, 3), coefficients=(1.0, -0.3, 7.25), threshold=float(rng.normal()), levels=(-1, -1, 1)),
        lambda: Threshold(feature=1, threshold=float(rng.choice(rows[:, 1]))),
    ]  # fmt: skip

    def draft(level):
        if level == 6:
            return DraftLeaf(label=int(rng.integers(2)))
        return DraftBranch(split=kinds[level](), left=draft(level + 1), right=draft(level + 1))

    labels = rng.integers(0, 2, TRAINING).astype(np.int32)
    tree = grow(draft(0), rows, labels, schema=SCHEMA, classes=("no", "yes </script>"))
    assert tree.n_leaves == 64
    return tree, rows


def drawn(rng, n):
    return np.column_stack(
        [
            rng.integers(-90, 91, n) / 10,
            rng.normal(35, 12, n),
            rng.integers(0, 2, n),
            rng.integers(0, 4, n),
            rng.integers(0, 3, n),
        ]
    ).astype(float)


def csv_of(rows, rng=None):
    """Return rows as a CSV file.

    With `rng`, some cells are empty, marks of missing values, or unknown categories.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([c.name for c in SCHEMA])
    for row in rows:
        cells = [
            c.categories[int(v)] if c.categories else repr(float(v)) for c, v in zip(SCHEMA, row.tolist(), strict=True)
        ]
        if rng is not None:
            for j in range(len(cells)):
                if rng.random() < 0.02:
                    cells[j] = str(rng.choice(["", "NA", "?", "null"]))
                elif SCHEMA[j].categories and rng.random() < 0.05:
                    cells[j] = "never seen, this"
        writer.writerow([c if c != MISSING_CATEGORY else "" for c in cells])
    return out.getvalue()


def kernel(tree, text):
    """Return the leaf of each row of a CSV file as the server reads it, or None if it has no answer."""
    rows = rows_for_model(read_csv(text.encode()), tree.schema, used=tree.used_columns)
    leaves = tree.apply(rows.table.matrix())
    return [int(leaf) if usable else None for leaf, usable in zip(leaves, rows.usable, strict=True)]


@pytest.fixture
def opened(large, windows, tmp_path):
    tree, rows = large
    known = coarse(statistics(tree.schema, rows))
    model = ModelFile(tree=tree, target="answer", name="A <large> tree", method="cart")
    subject = Subject(
        file=model, title=model.name, sha256="0" * 64, document="", statistics=statistics(tree.schema, rows)
    )
    path = tmp_path / "model.html"
    path.write_text(to_html(subject), encoding="utf-8")
    assert path.stat().st_size <= 500_000
    page = windows.page(width=1100, offline=True)
    trouble = []
    asked = []
    complaints(page, trouble)
    page.on("request", lambda r: asked.append(r.url))
    page.goto(path.as_uri())
    yield page, known
    assert trouble == []
    assert [u for u in asked if not u.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.slow
def test_every_row_gets_the_answer_of_the_kernel(large, opened):
    tree, rows = large
    page, _ = opened
    rng = np.random.default_rng(9)
    for text in (csv_of(rows), csv_of(drawn(rng, RANDOM), rng)):
        wanted = kernel(tree, text)
        assert page.evaluate("(text) => octweb.answersOf(text).found.map((a) => a.leaf)", text) == wanted
        assert len(wanted) in (TRAINING, RANDOM)
    assert len(set(wanted)) > 25
    assert None in wanted


def test_the_small_picture_cuts_no_number(windows):
    page = windows.page()
    page.set_content("<div></div>")
    page.add_script_tag(path=str(settings.BASE_DIR / "static" / "tree_picture.js"))
    evaluation = page.evaluate(
        """(names) => names.map((name) => {
          const question = `${name} ≤ 1,234,567.25`;
          TreePicture.draw(document.querySelector("div"), { classes: ["a"], nodes: [{ t: {}, y: 1, n: 2, q: question, r: 9 }, { l: 0, r: 4 }, { l: 0, r: 5 }] });
          return [...document.querySelectorAll("tspan")].map((line) => line.textContent);
        })""",
        ["n" * length for length in range(10, 45)],
    )
    assert sum(lines[0].endswith("…") for lines in evaluation) > 5
    assert all(lines[-1].endswith("≤ 1,234,567.25") for lines in evaluation), evaluation
    assert {len(lines) for lines in evaluation} == {1, 2}


@pytest.mark.slow
def test_values_flips_and_a_dropped_file(large, opened, tmp_path):
    tree, rows = large
    page, known = opened
    flipper = Flipper(tree, known)
    seen = 0
    for row in rows[:12]:
        for f, (c, v) in enumerate(zip(SCHEMA, row.tolist(), strict=True)):
            text = (
                ""
                if c.categories and c.categories[int(v)] == MISSING_CATEGORY
                else c.categories[int(v)]
                if c.categories
                else repr(v)
            )
            if c.kind is ColumnKind.NUMERIC:
                page.fill(f"#v{f}", text)
            else:
                page.select_option(f"#v{f}", text.removesuffix(".0"))
        page.click("#typed button")
        label = tree.classes[int(tree.predict(row.reshape(1, -1))[0])]
        assert page.inner_text("#answer h3 >> nth=0").strip().startswith(label)
        answer = flipper.find(row)
        said = page.inner_text("#answer ul, #answer p >> nth=1")
        if answer.flip is not None and len(answer.flip.columns) == 1 and answer.flip.proved:
            seen += 1
            assert "proved: no smaller" in page.inner_text("#answer ul li >> nth=0"), said
            size = float(page.inner_text("#answer ul li >> nth=0").partition("size ")[2].split(";")[0])
            assert math.isclose(size, answer.flip.distance, rel_tol=1e-3)
    assert seen >= 5
    text = csv_of(rows[:50])
    page.set_input_files("#file", {"name": "rows.csv", "mimeType": "text/csv", "buffer": text.encode()})
    with page.expect_download() as download:
        page.click("text=Save the answers")
    answers = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"))))
    assert [int(a["leaf"]) for a in answers] == kernel(tree, text)
    page.set_input_files("#file", {"name": "x.csv", "mimeType": "text/csv", "buffer": b"score\n1\n"})
    page.wait_for_selector("#csv-answer .error >> text=lacks 4 of the 5")


def test_permission_of_two_words_stays_on_the_file(windows, tmp_path):
    """The owner permits "up, whole" of a column of tenths: 5.1 becomes 7, neither 6.6 nor 5."""
    schema = (ColumnSchema(name="score", kind=ColumnKind.NUMERIC),)
    rows = np.array([[5.1], [6.4], [6.6], [8.0]])
    draft = DraftBranch(split=Threshold(feature=0, threshold=6.5), left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    tree = grow(draft, rows, np.array([0, 0, 1, 1], np.int32), schema=schema, classes=("no", "yes"))
    model = ModelFile(tree=tree, target="answer", name="Scores", method="cart")
    subject = Subject(
        file=model,
        title="Scores",
        sha256="0" * 64,
        document="",
        statistics=statistics(schema, rows),
        permissions=permissions(schema, {"score": "up,whole"}),
    )
    (tmp_path / "model.html").write_text(to_html(subject), encoding="utf-8")
    page = windows.page(width=1100, offline=True)
    page.goto((tmp_path / "model.html").as_uri())
    assert page.input_value("#m0") == "up,whole"
    page.fill("#v0", "5.1")
    page.click("#typed button")
    assert "score 7 instead of 5.1" in page.inner_text("#answer")


def test_page_is_accessible(opened):
    page, _ = opened
    for width, dark in ((1440, False), (380, True)):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme="dark" if dark else "light")
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        picture(page, f"carried-{width}")
    assert json.loads(page.evaluate("JSON.stringify(octweb.tree.classes)"))[1] == "yes </script>"
