"""API of data sets, below /api/v1/."""

from __future__ import annotations

from dataclasses import asdict
from itertools import chain
from typing import Any

from django.db import transaction
from django.http import StreamingHttpResponse
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiTypes,
    extend_schema,
    extend_schema_field,
    extend_schema_view,
)  # fmt: skip
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from octweb.audit import actions as audit
from octweb.core import strict_json
from octweb.core.api import PROBLEMS, Name, StrictTextField
from octweb.core.attachments import as_file
from octweb.core.parsers import StrictJSONParser
from octweb.datasets import actions, versions
from octweb.datasets.choice import ColumnChoice, ReadOptions
from octweb.datasets.models import Dataset
from trainer.data.inspection import SEVERITIES
from trainer.data.parsing import EVERY, ParsingChoices
from trainer.data.parsing import ColumnParsing as TableReading
from trainer.data.parsing.codes import MOST
from trainer.data.parsing.column import kind_of
from trainer.data.parsing.given import WORDS
from trainer.errors import DataError
from trainer.table import ColumnKind, MissingPolicy, UnknownPolicy

MAX_ROWS_SHOWN = 1000


class DatasetSerializer(serializers.ModelSerializer):
    """A data set as the API answers it."""

    columns = serializers.ListField(child=serializers.DictField())
    profile = serializers.DictField()
    owner = serializers.CharField(source="owner.username")
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


class NewDatasetSerializer(serializers.Serializer):
    """A file and how to read it."""

    file = serializers.FileField(allow_empty_file=True)
    name = Name(max_length=200)
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
        required=False, default="", allow_blank=True,
        help_text='JSON, words that mean that a cell is empty: ["unknown"] or {"column": ["unknown"]}',
    )  # fmt: skip
    skip_top = serializers.IntegerField(required=False, min_value=0, max_value=9999, help_text="lines above the table")
    skip_bottom = serializers.IntegerField(
        required=False, min_value=0, max_value=9999, help_text="lines below the table"
    )
    kinds = StrictTextField(
        required=False, default="", allow_blank=True,
        help_text='JSON: {"column": "categorical"}; also number:,. or date:dd/mm/yyyy and the like',
    )  # fmt: skip
    special = StrictTextField(
        required=False, default="", allow_blank=True, help_text='JSON, values that are codes: {"column": [-7, -8]}'
    )
    merge = StrictTextField(
        required=False, default="", allow_blank=True,
        help_text='JSON, columns in which all spellings of a value are read as the most frequent one: ["label"]',
    )  # fmt: skip
    ignore = StrictTextField(
        required=False, default="", allow_blank=True, help_text='JSON, columns to leave out: ["id"]'
    )
    unknown = StrictTextField(
        required=False, default="", allow_blank=True,
        help_text='what predictions do with a category that training did not have: warn, branch or refuse, or JSON by column: {"town": "refuse"}',
    )  # fmt: skip

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
        """Check the options together, and add `given`: the choices on the cells."""
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
    """One finding of the intake report."""

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
    kind = serializers.ChoiceField([str(k) for k in ColumnKind], required=False)
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


class DatasetChangeSerializer(serializers.Serializer):
    """The body of PATCH."""

    name = StrictTextField(required=False, max_length=200)
    target = StrictTextField(required=False, max_length=200)
    columns = ColumnChangeSerializer(many=True, required=False)


class NewVersionSerializer(serializers.Serializer):
    """A file with the columns of a data set."""

    file = serializers.FileField(allow_empty_file=True)
    as_it_is = serializers.BooleanField(
        required=False, default=False, help_text="true: store it even if units or spellings seem to have changed"
    )


class DifferenceSerializer(serializers.Serializer):
    """A difference from the version before."""

    where = serializers.CharField(help_text="a column, or `rows`")
    before = serializers.CharField()
    now = serializers.CharField()


class VersionSerializer(DatasetSerializer):
    """A version of a data set with its differences from the version before."""

    differences = serializers.SerializerMethodField()

    class Meta(DatasetSerializer.Meta):
        fields = [*DatasetSerializer.Meta.fields, "differences"]
        read_only_fields = fields

    @extend_schema_field(DifferenceSerializer(many=True))
    def get_differences(self, dataset: Dataset) -> list[dict[str, Any]]:
        return [asdict(difference) for difference in versions.changes(dataset)]


class RowsSerializer(serializers.Serializer):
    """The first rows as they were read."""

    columns = serializers.ListField(child=serializers.CharField())
    rows = serializers.ListField(child=serializers.ListField(child=serializers.CharField(allow_null=True)))


@extend_schema_view(
    list=extend_schema(
        responses={200: DatasetSerializer(many=True)} | PROBLEMS(400, 401, 403, 404, 429),
        parameters=[OpenApiParameter("name", str, description="a part of the name")],
    ),
    retrieve=extend_schema(responses={200: DatasetSerializer} | PROBLEMS(401, 403, 404, 429)),
    destroy=extend_schema(responses={204: None} | PROBLEMS(401, 403, 404, 409, 429)),
)
class DatasetViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, mixins.DestroyModelMixin, viewsets.GenericViewSet
):
    """Data sets of the caller."""

    serializer_class = DatasetSerializer
    queryset = Dataset.objects.none()
    parser_classes = [StrictJSONParser]

    def get_parsers(self):
        # one content type per operation, so that the OpenAPI document lists only what works
        operation = getattr(self, "action_map", {}).get(self.request.method.lower() if self.request else "post")
        if operation in ("create", "new_version"):
            return [MultiPartParser()]
        return [StrictJSONParser()]

    def get_queryset(self):
        datasets = Dataset.objects.visible_to(self.request.user).select_related("owner")
        name = self.request.query_params.get("name", "").replace("\x00", "")
        return datasets.filter(name__icontains=name) if name else datasets

    def get_object(self) -> Dataset:
        return Dataset.objects.select_related("owner").get_visible(self.request.user, self.kwargs["pk"])

    def perform_destroy(self, instance: Dataset) -> None:
        with transaction.atomic():
            actions.delete(instance)
            audit.record("deleted", instance, by=self.request.user)

    @extend_schema(
        request={"multipart/form-data": NewDatasetSerializer},
        responses={201: DatasetSerializer} | PROBLEMS(400, 401, 403, 413, 415, 422, 429),
    )
    def create(self, request: Request) -> Response:
        form = NewDatasetSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        values = form.validated_data
        dataset = actions.create(
            owner=request.user,
            file=values["file"],
            source_name=values["file"].name or "file.csv",
            name=values["name"],
            reading=ReadOptions(
                delimiter=values["delimiter"] or None,
                encoding=values["encoding"] or None,
                header=values["header"],
                sheet=values["sheet"] or None,
                given=values["given"],
            ),
            choice=ColumnChoice(
                target=values["target"] or None,
                kinds={
                    name: ColumnKind(kind) for name, kind in (values["kinds"] or {}).items() if kind in list(ColumnKind)
                },
                special=values["special"] or {},
                ignore=values["ignore"] or None,
                unknown=values["unknown"],
            ),
        )
        return Response(DatasetSerializer(dataset).data, status=201)

    @extend_schema(
        request=DatasetChangeSerializer,
        responses={200: DatasetSerializer} | PROBLEMS(400, 401, 403, 404, 413, 415, 422, 429),
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        dataset = self.get_object()
        form = DatasetChangeSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        values = form.validated_data
        choice = _choice(dataset, values) if "target" in values or "columns" in values else None
        parsing_choices = _parsing_choices(values.get("columns", []))
        changed = actions.update(dataset, name=values.get("name"), choice=choice, said=parsing_choices)
        return Response(DatasetSerializer(changed).data)

    @extend_schema(
        responses={200: RowsSerializer} | PROBLEMS(400, 401, 403, 404, 422, 429),
        parameters=[OpenApiParameter("limit", int, description=f"at most {MAX_ROWS_SHOWN}")],
    )
    @action(detail=True, methods=["get"], pagination_class=None)
    def rows(self, request: Request, pk: str) -> Response:
        dataset = self.get_object()
        raw_limit = request.query_params.get("limit", "20")
        if not (
            raw_limit.isascii() and raw_limit.isdigit() and len(raw_limit) <= 4 and int(raw_limit) <= MAX_ROWS_SHOWN
        ):
            raise ValidationError({"limit": f"'{raw_limit[:40]}' is not a whole number from 0 to {MAX_ROWS_SHOWN}."})
        names, rows = actions.first_rows(dataset, int(raw_limit))
        return Response(
            {"columns": list(names), "rows": [[None if v is None else str(v) for v in row] for row in rows]}
        )

    @extend_schema(
        request={"multipart/form-data": NewVersionSerializer},
        responses={201: VersionSerializer} | PROBLEMS(400, 401, 403, 404, 413, 415, 422, 429),
    )
    @action(detail=True, methods=["post"], url_path="versions", pagination_class=None)
    def new_version(self, request: Request, pk: str) -> Response:
        """Store the next version: a file with the same columns, read in the same way.

        422 if its columns differ, or if values seem to have another form, such as another unit. Nothing is stored then.
        """
        dataset = self.get_object()
        form = NewVersionSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        file = form.validated_data["file"]
        try:
            version = versions.new_version(
                dataset,
                owner=request.user,
                file=file,
                source_name=file.name or "file.csv",
                as_it_is=form.validated_data["as_it_is"],
            )
        except versions.ChangedForms as error:
            raise DataError(f"{error} Send `as_it_is` to store it as it is.", problems=error.problems) from error
        return Response(VersionSerializer(version).data, status=201)

    @extend_schema(responses={200: VersionSerializer(many=True)} | PROBLEMS(401, 403, 404, 429))
    @new_version.mapping.get
    def list_versions(self, request: Request, pk: str) -> Response:
        """Return this version and those before it, the newest first."""
        return Response(VersionSerializer(versions.history(self.get_object(), request.user), many=True).data)

    @extend_schema(responses={200: FindingSerializer(many=True)} | PROBLEMS(401, 403, 404, 422, 429))
    @action(detail=True, methods=["get"], pagination_class=None)
    def inspection(self, request: Request, pk: str) -> Response:
        """Return the intake report: possible problems of the table, the worst first."""
        return Response(actions.findings(self.get_object()))

    @extend_schema(responses={200: OpenApiTypes.OBJECT} | PROBLEMS(401, 403, 404, 422, 429))
    @action(detail=True, methods=["get"], pagination_class=None)
    def contract(self, request: Request, pk: str) -> Response:
        """Return the contract of the table: what each column and the target mean."""
        return Response(actions.contract(self.get_object()))

    @extend_schema(
        responses={(200, "text/csv"): OpenApiTypes.STR} | PROBLEMS(401, 403, 404, 422, 429),
        parameters=[
            OpenApiParameter(
                "as", str, enum=["text", "read"],
                description="read: every cell as it was read; otherwise texts that a spreadsheet would take for formulas get an apostrophe",
            )
        ],
    )  # fmt: skip
    @action(detail=True, methods=["get"], pagination_class=None)
    def download(self, request: Request, pk: str) -> StreamingHttpResponse:
        dataset = self.get_object()
        lines = actions.csv_lines(dataset, for_spreadsheets=request.query_params.get("as") != "read")
        start = next(lines)  # fail on a missing file before the response begins
        answer = StreamingHttpResponse(chain([start], lines), content_type="text/csv; charset=utf-8")
        return as_file(answer, f"{dataset.pk}.csv")


def _names(text: str) -> list[str]:
    """Return the names in a JSON list; raises ValidationError."""
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


def _parsing_choices(changes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the choices on the cells in a change, as `ParsingChoices` writes them."""
    merge: dict[str, Any] = {change["name"]: {} for change in changes if change.get("merge")}
    missing = {change["name"]: change["missing_words"] for change in changes if change.get("missing_words")}
    return {what: by_column for what, by_column in (("merge", merge), ("missing", missing)) if by_column}


def _choice(dataset: Dataset, values: dict[str, Any]) -> ColumnChoice:
    changes = values.get("columns", [])
    ignored = {c["name"] for c in dataset.columns if c["role"] == "ignored"}
    for change in changes:
        if change.get("role") == "ignored":
            ignored.add(change["name"])
        elif change.get("role") == "feature":
            ignored.discard(change["name"])
    kinds = {c["name"]: ColumnKind(c["kind"]) for c in changes if "kind" in c}
    # a column that becomes a feature again needs a kind, or it stays ignored
    for change in changes:
        if change.get("role") == "feature" and change["name"] not in kinds:
            record = next((c for c in dataset.columns if c["name"] == change["name"]), None)
            if record is not None:
                kinds[change["name"]] = ColumnKind(record["kind"])
    known = {c["name"]: c["kind"] for c in dataset.columns} | kinds
    for change in changes:
        kind = known.get(change["name"], ColumnKind.CATEGORICAL)
        if change.get("unknown", UnknownPolicy.REFUSE) != UnknownPolicy.REFUSE and kind != ColumnKind.CATEGORICAL:
            raise serializers.ValidationError(
                {
                    "columns": f"Column '{change['name']}' is {kind}, so a text in it is always refused. Make it categorical first."
                }
            )
    return ColumnChoice(
        target=values.get("target"),
        kinds=kinds,
        missing={c["name"]: MissingPolicy(c["missing_policy"]) for c in changes if "missing_policy" in c},
        unknown={c["name"]: UnknownPolicy(c["unknown"]) for c in changes if "unknown" in c},
        units={c["name"]: c["unit"] for c in changes if "unit" in c},
        special={c["name"]: c["special"] for c in changes if "special" in c},
        meanings={c["name"]: c["meanings"] for c in changes if "meanings" in c},
        ignore=sorted(ignored),
    )
