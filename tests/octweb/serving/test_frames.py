"""All interfaces predict the same for a frame, or refuse it. There are 386 frames of 11 kinds of columns."""

from __future__ import annotations

import pytest

from tests.octweb.serving.frames import CHOICES, ODD, REFUSED, cells_of, forms_of, trained_on

pytestmark = pytest.mark.django_db


@pytest.fixture
def open_doors(owner, staff, client_of, tmp_path):
    """Provide a function that trains on a kind of column and returns the interfaces of its model."""

    def train(kind, options):
        learned = {"missing": "learn"} if "gaps" in kind else {}
        return trained_on(kind, options | learned, owner, staff, client_of(owner), tmp_path)

    return train


def assert_one_answer(doors, frames, kind, options):
    usual = doors.estimator(frames["objects"])
    assert usual != REFUSED
    for form, frame in frames.items():
        answers = doors.answers(frame)
        expected = answers["estimator"]
        assert {name: found for name, found in answers.items() if found != expected} == {}, (form, expected)
        if form not in ODD:
            assert expected == usual, form
        elif options and (form == "never seen" or "gaps" not in kind):
            assert expected == REFUSED, form


@pytest.mark.parametrize("kind", ["codes", "truths as text"])
def test_few_frames_get_one_answer_at_every_door(kind, open_doors):
    frames = forms_of(cells_of(kind, 1))
    few = {form: frames[form] for form in ("objects", "marks", "polars", "arrow")}
    assert_one_answer(open_doors(kind, {}), few, kind, {})


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"missing": "refuse", "unknown": "refuse"}], ids=["lenient", "strict"])
@pytest.mark.parametrize("kind", CHOICES)
def test_frames_get_one_answer_at_every_door(kind, options, open_doors):
    """With both settings, the 11 kinds of columns give 386 frames."""
    frames = forms_of(cells_of(kind, 1))
    assert len(frames) >= 13
    assert_one_answer(open_doors(kind, options), frames, kind, options)
