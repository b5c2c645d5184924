"""Forms of sources: rows to choose, and settings of a count."""

from __future__ import annotations

from typing import Any

from django import forms

from octweb.core.forms import SaidForm
from octweb.datasets.sources import MAX_QUERY_CHARACTERS, NamedSource
from octweb.sources.actions import SCHEMES, CountSettings
from trainer.counts.collect import MOST_BINS
from trainer.counts.sets import DEEPEST
from trainer.data.folds import MOST_FOLDS


class RowsForm(SaidForm):
    """Choice of a table, a file or a query of a source."""

    table = forms.CharField(required=False, max_length=500)
    query = forms.CharField(
        required=False,
        max_length=MAX_QUERY_CHARACTERS,
        label="Or a query",
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text="one SELECT, which only reads; for example SELECT * FROM loans WHERE year > 2020",
    )

    def __init__(self, *args: Any, source: NamedSource, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if source.is_database:
            self.fields["table"].label = "Table or view"
        else:
            self.fields["table"].label = "File or subfolder"
            self.fields["table"].help_text = "leave it empty for all files together"
            del self.fields["query"]


class SettingsForm(SaidForm):
    """Settings of a count, below the preview."""

    depth = forms.IntegerField(
        min_value=1,
        max_value=DEEPEST,
        initial=CountSettings.depth,
        label="Deepest tree",
        help_text="Counts work for trees of depth 1 to 3",
    )
    scheme = forms.ChoiceField(choices=SCHEMES, initial=CountSettings.scheme, label="Questions about numbers")
    bins = forms.IntegerField(
        min_value=2,
        max_value=MOST_BINS,
        initial=CountSettings.bins,
        label="Parts of each number",
        help_text="Quantiles; more parts make more questions and take longer",
    )
    key = forms.ChoiceField(
        required=False,
        label="Test on unseen rows by",
        help_text="A column such as the customer: rows with the same value are in one part. No question asks it",
    )
    folds = forms.IntegerField(min_value=2, max_value=MOST_FOLDS, initial=5, required=False, label="Parts for the test")

    def __init__(self, *args: Any, columns: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["key"].choices = [("", "no test"), *((name, name) for name in columns)]

    def settings(self) -> CountSettings:
        """Return the settings of a valid form."""
        values = self.cleaned_data
        folds = (values["folds"] or 5) if values["key"] else 0
        return CountSettings(
            depth=values["depth"], bins=values["bins"], scheme=values["scheme"], folds=folds, key=values["key"]
        )
