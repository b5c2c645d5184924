"""Request and response bodies of the data set API."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from octweb.core import strict_json
from octweb.core.api import BodySerializer, Name, StrictTextField
from octweb.datasets import versions
from octweb.datasets.models import Dataset
from trainer.data.inspection import SEVERITIES
from trainer.data.parsing import EVERY, ParsingChoices
from trainer.data.parsing import ColumnParsing as TableReading
from trainer.data.parsing.codes import MOST
from trainer.data.parsing.column import RANKS, kind_of
from trainer.data.parsing.given import WORDS
from trainer.errors import DataError
from trainer.table import ColumnKind, MissingPolicy, UnknownPolicy


class DatasetSerializer(serializers.ModelSerializer):
    """A data set: its columns, target, profile and source file."""

    columns = serializers.ListField(child=serializers.DictField())
    profile = serializers.DictField()
    owner = serializers.CharField(source="owner.username")
    origin = serializers.DictField(
        help_text="of a data set with counts instead of rows: source, table or query, snapshot, SHA-256 and how they were made; {} for other data sets"
    )
    reading = serializers.SerializerMethodField(
        help_text="how columns of the file were read, with the reason and the options that change it"
    )

    class Meta:
        model = Dataset
        fields = [
            "id",
            "name",
            "rows",
            "columns",
            "target",
            "profile",
            "sha256",
            "source_name",
            "sample",
            "created",
            "owner",
            "reading",
            "version",
            "previous",
            "origin",
            "team",
        ]
        read_only_fields = fields

    @extend_schema_field(serializers.ListField(child=serializers.DictField()))
    def get_reading(self, dataset: Dataset) -> list[dict[str, Any]]:
        parsing = TableReading.from_json(dataset.reading)
        lines = [
            {"line": line, "taken_for": what, "text": text}
            for what, lines_around in (("title", parsing.top), ("footer", parsing.bottom))
            for line, text in lines_around
        ]
        return [*lines, *({"column": c.name, "words": c.words, **c.to_json()} for c in parsing.columns.values())]

    def to_representation(self, instance: Dataset) -> dict[str, Any]:
        record = super().to_representation(instance)
        record["columns"] = [c | {"missing_policy": c["missing"], "missing": c["empty"]} for c in record["columns"]]
        return record


class NewDatasetSerializer(BodySerializer):
    """A file to upload, and options for parsing it."""

    file = serializers.FileField(allow_empty_file=True)
    name = Name(max_length=200)
    team = serializers.UUIDField(required=False, help_text="id of the team to which the table belongs")
    target = StrictTextField(required=False, default="", allow_blank=True, max_length=200)
    delimiter = StrictTextField(required=False, default="", allow_blank=True, max_length=1, trim_whitespace=False)
    encoding = StrictTextField(required=False, default="", allow_blank=True, max_length=40)
    header = serializers.BooleanField(
        required=False,
        default=True,
        help_text="false: the first line is a row; the columns are called 'column 1' and so on",
    )
    sheet = StrictTextField(
        required=False,
        default="",
        allow_blank=True,
        max_length=200,
        help_text="of an .xlsx file; the first visible one if not given",
    )
    decimal = StrictTextField(
        required=False, default="", allow_blank=True, max_length=20, help_text="point or comma, for all columns"
    )
    thousands = StrictTextField(
        required=False, default="", allow_blank=True, max_length=20, help_text="comma, point, space, apostrophe or none"
    )
    missing_words = StrictTextField(
        required=False,
        default="",
        allow_blank=True,
        help_text='JSON, words that mean that a cell is empty: ["unknown"] or {"column": ["unknown"]}',
    )
    skip_top = serializers.IntegerField(required=False, min_value=0, max_value=9999, help_text="lines above the table")
    skip_bottom = serializers.IntegerField(
        required=False, min_value=0, max_value=9999, help_text="lines below the table"
    )
    kinds = StrictTextField(
        required=False,
        default="",
        allow_blank=True,
        help_text='JSON: {"column": "categorical"}; also number:,. or date:dd/mm/yyyy and the like',
    )
    special = StrictTextField(
        required=False, default="", allow_blank=True, help_text='JSON, values that are codes: {"column": [-7, -8]}'
    )
    merge = StrictTextField(
        required=False,
        default="",
        allow_blank=True,
        help_text='JSON, columns in which all spellings of a value are read as the most frequent one: ["label"]',
    )
    ignore = StrictTextField(
        required=False, default="", allow_blank=True, help_text='JSON, columns to leave out: ["id"]'
    )
    unknown = StrictTextField(
        required=False,
        default="",
        allow_blank=True,
        help_text='what predictions do with a category that training did not have: warn, branch or refuse, or JSON by column: {"town": "refuse"}',
    )

    def validate_unknown(self, text: str) -> dict[str, UnknownPolicy]:
        words = {EVERY: text}
        try:
            words = words if not text or text in list(UnknownPolicy) else strict_json.loads(text.encode())
            return {str(name): UnknownPolicy(word) for name, word in words.items() if word}
        except (AttributeError, TypeError, ValueError) as error:
            allowed = ", ".join(UnknownPolicy)
            raise serializers.ValidationError(
                f'Send one of {allowed}, or an object such as {{"town": "refuse"}}.'
            ) from error

    def validate_merge(self, text: str) -> list[str]:
        return _names(text)

    def validate_ignore(self, text: str) -> list[str]:
        return _names(text)

    def validate_special(self, text: str) -> dict[str, tuple[float, ...]]:
        try:
            codes_by_column = strict_json.loads(text.encode()) if text else {}
        except ValueError as error:
            raise serializers.ValidationError(
                f'This is not a JSON object: {error}. Send for example {{"income": [-7, -8]}}.'
            ) from error
        numbers = isinstance(codes_by_column, dict) and all(
            isinstance(codes, list)
            and len(codes) <= MOST
            and all(type(v) in (int, float) and abs(v) < 1e300 for v in codes)
            for codes in codes_by_column.values()
        )
        if not numbers:
            raise serializers.ValidationError(
                f'Send an object such as {{"income": [-7, -8]}}, with at most {MOST} numbers for a column.'
            )
        return {name: tuple(float(v) for v in codes) for name, codes in codes_by_column.items()}

    def validate_kinds(self, text: str) -> dict[str, str]:
        if not text:
            return {}
        try:
            return _kinds(strict_json.loads(text.encode()))
        except ValueError as error:
            raise serializers.ValidationError(
                f'This is not a JSON object: {error}. Send for example {{"column": "categorical"}}.'
            ) from error

    def validate_missing_words(self, text: str) -> dict[str, list[str]]:
        try:
            words_by_column = strict_json.loads(text.encode()) if text else {}
        except ValueError as error:
            raise serializers.ValidationError(f'This is not JSON: {error}. Send a list such as ["unknown"].') from error
        words_by_column = {EVERY: words_by_column} if isinstance(words_by_column, list) else words_by_column
        if not isinstance(words_by_column, dict) or not all(
            isinstance(words, list) and all(isinstance(word, str) for word in words)
            for words in words_by_column.values()
        ):
            raise serializers.ValidationError('Send a list such as ["unknown"], or an object of such lists by column.')
        return words_by_column

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        """Validate the options together, and add `given`: the choices about cells."""
        kinds = {name: kind for name, kind in (values["kinds"] or {}).items() if kind not in list(ColumnKind)}
        choices: dict[str, Any] = {"kinds": kinds, "missing": values["missing_words"] or {}}
        for what in ("decimal", "thousands"):
            if values[what]:
                choices[what] = {EVERY: WORDS.get(values[what], values[what])}
        choices["merge"] = {name: {} for name in values["merge"] or ()}
        choices |= {what: values[what] for what in ("skip_top", "skip_bottom") if values.get(what) is not None}
        try:
            ParsingChoices.from_json(choices)
        except DataError as error:
            raise serializers.ValidationError(str(error)) from error
        return values | {"given": choices if any(v or v == 0 for v in choices.values()) else {}}


class FindingSerializer(serializers.Serializer):
    """A finding of the intake report."""

    kind = serializers.CharField()
    column = serializers.CharField(allow_blank=True, help_text="empty for the table as a whole")
    severity = serializers.ChoiceField(SEVERITIES)
    figure = serializers.CharField()
    sentence = serializers.CharField(help_text="why it matters")
    mend = serializers.DictField(help_text="the remedy: a column and what to change; empty if the file must change")
    if_nothing = serializers.CharField(help_text="what happens if nothing is done")


class ColumnChangeSerializer(serializers.Serializer):
    """A change of one column."""

    name = StrictTextField()
    kind = serializers.ChoiceField(
        [*(str(k) for k in ColumnKind), RANKS],
        required=False,
        help_text="ranks: categories in the order that the file declares",
    )
    missing_policy = serializers.ChoiceField([str(p) for p in MissingPolicy], required=False)
    unknown = serializers.ChoiceField(
        [str(p) for p in UnknownPolicy],
        required=False,
        help_text="of categories: what predictions do with one that training did not have",
    )
    unit = StrictTextField(required=False, allow_blank=True, max_length=40)
    special = serializers.ListField(
        child=serializers.FloatField(),
        required=False,
        max_length=20,
        help_text="values of a numeric column that are codes",
    )
    meanings = serializers.DictField(
        child=StrictTextField(allow_blank=False, max_length=80),
        required=False,
        help_text='what codes mean: {"-7": "refused"}',
    )
    role = serializers.ChoiceField(["feature", "ignored"], required=False)
    merge = serializers.ChoiceField(
        [True], required=False, help_text="true: all spellings of a value are read as the most frequent one"
    )
    missing_words = serializers.ListField(
        child=StrictTextField(max_length=100),
        required=False,
        max_length=20,
        help_text="words that mean that a cell is empty",
    )


class DatasetChangeSerializer(BodySerializer):
    """Changes of a data set. Members that are left out stay as they are."""

    name = StrictTextField(required=False, max_length=200)
    target = StrictTextField(required=False, max_length=200)
    columns = ColumnChangeSerializer(many=True, required=False)


class NewVersionSerializer(BodySerializer):
    """The next version: a file with the columns of the data set."""

    file = serializers.FileField(allow_empty_file=True)
    as_it_is = serializers.BooleanField(
        required=False, default=False, help_text="true: store it even if units or spellings seem to have changed"
    )
    dry_run = serializers.BooleanField(
        required=False, default=False, help_text="true: answer the differences, and store nothing"
    )


class DifferenceSerializer(serializers.Serializer):
    """A difference from the previous version."""

    where = serializers.CharField(help_text="a column, or `rows`")
    before = serializers.CharField()
    now = serializers.CharField()


class VersionPreviewSerializer(serializers.Serializer):
    """What a file would be as the next version."""

    rows = serializers.IntegerField()
    differences = DifferenceSerializer(many=True)
    problems = serializers.ListField(child=serializers.CharField(), help_text="columns that need `as_it_is`")


class VersionSerializer(DatasetSerializer):
    """A version of a data set, with its differences from the previous version."""

    differences = serializers.SerializerMethodField()

    class Meta(DatasetSerializer.Meta):
        fields = [*DatasetSerializer.Meta.fields, "differences"]
        read_only_fields = fields

    @extend_schema_field(DifferenceSerializer(many=True))
    def get_differences(self, dataset: Dataset) -> list[dict[str, Any]]:
        return [asdict(difference) for difference in versions.changes(dataset)]


class RowsSerializer(serializers.Serializer):
    """The first rows, as they were parsed."""

    columns = serializers.ListField(child=serializers.CharField())
    rows = serializers.ListField(child=serializers.ListField(child=serializers.CharField(allow_null=True)))


def _names(text: str) -> list[str]:
    """Parse a JSON list of names. Raises ValidationError."""
    try:
        names = strict_json.loads(text.encode()) if text else []
    except ValueError as error:
        raise serializers.ValidationError(
            f'This is not JSON: {error}. Send a list of columns such as ["label"].'
        ) from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise serializers.ValidationError('Send a list of columns such as ["label"].')
    return names


def _kinds(raw: Any) -> dict[str, str]:
    if not isinstance(raw, dict) or not all(isinstance(v, str) for v in raw.values()):
        raise serializers.ValidationError(
            f'Send an object such as {{"column": "categorical"}}; kinds are {", ".join(ColumnKind)}, and forms such as number:,. or date:dd/mm/yyyy.'
        )
    try:
        for kind in raw.values():
            kind_of(kind)
    except DataError as error:
        raise serializers.ValidationError(str(error)) from error
    return dict(raw)
