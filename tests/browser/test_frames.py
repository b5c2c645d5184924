"""The standalone HTML file predicts CSV from all data frame libraries like an estimator."""

from __future__ import annotations

import pytest

from tests.octweb.serving.frames import CHOICES, REFUSED, Doors, cells_of, csv_of, fitted_on, forms_of, training_of
from trainer.data.column_statistics import statistics
from trainer.model_page import Subject, to_html
from trainer.sklearn_api.estimator_input import read_rows
from trainer.tree.file import read_model

pytestmark = pytest.mark.browser
ANSWERS = """(text) => {
  try { return octweb.answersOf(text).found.map((answer) => answer.leaf) } catch (error) { return [null] }
}"""


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"missing": "refuse", "unknown": "refuse"}], ids=["lenient", "strict"])
def test_file_answers_frames_like_the_estimator(options, windows, tmp_path):
    page = windows.page(width=1100, offline=True)
    for kind in CHOICES:
        classifier = fitted_on(kind, options | ({"missing": "learn"} if "gaps" in kind else {}))
        path = tmp_path / f"{kind}.json"
        classifier.save(path)
        file = read_model(path)
        matrix = read_rows(classifier, training_of(kind)[0], file.tree.schema).matrix
        known = statistics(file.tree.schema, matrix)
        subject = Subject(file=file, title="Frames", sha256="0" * 64, document="", statistics=known)
        (tmp_path / "model.html").write_text(to_html(subject), encoding="utf-8")
        page.goto((tmp_path / "model.html").as_uri())
        doors = Doors(classifier, None, None, tmp_path)
        for form, frame in forms_of(cells_of(kind, 1)).items():
            expected = doors.estimator(frame)
            leaves = page.evaluate(ANSWERS, csv_of(frame))
            assert (REFUSED if None in leaves else leaves) == expected, (kind, form)
