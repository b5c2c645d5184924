"""Each error of a form names its field and accepted values, and none is Django's own."""

from __future__ import annotations

import pytest
from django import forms
from django.core.exceptions import ValidationError

from octweb.core.forms import SaidForm
from octweb.runs.constraint_fields import MinutesField
from octweb.serving.views import TokenForm


def refuse(value):
    raise ValidationError("is odd", code="odd")


class Everything(SaidForm):
    folds = forms.IntegerField(min_value=3, max_value=2000, label="Folds")
    most = forms.FloatField(max_value=0.5, label="Most", required=False)
    least = forms.FloatField(min_value=2, label="Least", required=False)
    name = forms.CharField(max_length=5, label="Name")
    kind = forms.ChoiceField(choices=[("a", "A")], label="Kind")
    minutes = MinutesField(min_value=0, label="Time", required=False)
    file = forms.FileField(label="File")
    own = forms.CharField(error_messages={"required": "Words of its own."}, required=True)
    odd = forms.CharField(validators=[refuse], required=False)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("folds", "2", "“Folds” needs a whole number from 3 to 2,000."),
        ("folds", "2001", "“Folds” needs a whole number from 3 to 2,000."),
        ("folds", "many", "“Folds” needs a whole number from 3 to 2,000."),
        ("folds", "", "Fill in “Folds”."),
        ("most", "0.6", "“Most” needs a number of at most 0.5."),
        ("most", "x", "“Most” needs a number of at most 0.5."),
        ("least", "1", "“Least” needs a number of at least 2."),
        ("name", "abcdef", "“Name” has 6 characters; the limit is 5. Shorten it."),
        ("name", "a\x00", "“Name” contains a null character, which cannot be stored. Type it again."),
        ("kind", "b", "“b” is not one of the choices of “Kind”. Choose one that is listed."),
        ("kind", "", "Choose “Kind”."),
        ("minutes", "soon", "“Time” needs a number of at least 0."),
        ("file", None, "Choose a file first."),
        ("own", "", "Words of its own."),
        ("odd", "x", "is odd"),
    ],
)
def test_errors_use_our_own_wording(name, value, words):
    form = Everything({name: value})
    assert form.errors[name] == [words]


def test_token_form_uses_plain_words():
    assert (
        TokenForm({"scope": "predict", "days": "0"})
        .errors["days"][0]
        .startswith("“Days until it expires” needs a whole")
    )


def test_every_form_of_the_application_does():
    import octweb.batch.views
    import octweb.experiments.forms
    import octweb.runs.forms  # noqa: F401

    ours = [own for own in _below(forms.Form) if own.__module__.startswith("octweb.")]
    assert len(ours) >= 5
    assert [own.__name__ for own in ours if not issubclass(own, SaidForm)] == []


def _below(kind: type) -> list[type]:
    return [below for own in kind.__subclasses__() for below in (own, *_below(own))]
