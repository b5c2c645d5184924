"""API of data sets, below /api/v1/."""

from __future__ import annotations

from itertools import chain
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.http import FileResponse, StreamingHttpResponse
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiTypes,
    extend_schema,
    extend_schema_view,
)
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from octweb.audit import actions as audit
from octweb.core.api import PROBLEMS
from octweb.core.attachments import as_file
from octweb.core.idempotency import idempotent
from octweb.core.model_schema import reference
from octweb.core.ownership import CHANGING_ROLES, check_deletable, has_team_role
from octweb.core.parsers import StrictJSONParser
from octweb.datasets import actions, versions
from octweb.datasets.choice import ColumnChoice, ReadOptions
from octweb.datasets.models import Dataset
from octweb.datasets.serializers import (
    DatasetChangeSerializer,
    DatasetSerializer,
    FindingSerializer,
    NewDatasetSerializer,
    NewVersionSerializer,
    RowsSerializer,
    VersionPreviewSerializer,
    VersionSerializer,
)
from trainer.data.parsing.column import RANKS
from trainer.errors import DataError
from trainer.table import ColumnKind, MissingPolicy, UnknownPolicy

MAX_ROWS_SHOWN = 1000


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
    search_fields = ("name", "source_name", "target")
    ordering_fields = {"created": "created", "name": "name", "rows": "rows"}
    parser_classes = [StrictJSONParser]

    def get_parsers(self) -> list[Any]:
        # each operation has one content type, so that the OpenAPI document lists only what works
        operation = getattr(self, "action_map", {}).get(self.request.method.lower() if self.request else "post")
        if operation in ("create", "new_version"):
            return [MultiPartParser()]
        return [StrictJSONParser()]

    def get_queryset(self) -> QuerySet:
        datasets = Dataset.objects.visible_to(self.request.user).select_related("owner")
        name = self.request.query_params.get("name", "").replace("\x00", "")
        return datasets.filter(name__icontains=name) if name else datasets

    def get_object(self) -> Dataset:
        return Dataset.objects.select_related("owner").get_for(self.request, self.kwargs["pk"])

    def perform_destroy(self, instance: Dataset) -> None:
        check_deletable(self.request.user, instance)
        with transaction.atomic():
            actions.delete(instance)
            audit.record("deleted", instance, by=self.request.user)

    @extend_schema(
        request={"multipart/form-data": NewDatasetSerializer},
        responses={201: DatasetSerializer} | PROBLEMS(400, 401, 403, 413, 415, 422, 429),
    )
    @idempotent
    def create(self, request: Request) -> Response:
        form = NewDatasetSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        values = form.validated_data
        team = values.get("team")
        if team is not None and not has_team_role(request.user, team, CHANGING_ROLES):
            raise ValidationError({"team": "You are owner or editor of no team with this id. Check the id."})
        dataset = actions.create(
            before_store=lambda dataset: setattr(dataset, "team_id", team),
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
        responses={200: VersionPreviewSerializer, 201: VersionSerializer}
        | PROBLEMS(400, 401, 403, 404, 413, 415, 422, 429),
    )
    @action(detail=True, methods=["post"], url_path="versions", pagination_class=None)
    @idempotent
    def new_version(self, request: Request, pk: str) -> Response:
        """Store the next version: a file with the same columns, which is parsed in the same way.

        Status 422 if the columns differ, or if values seem to have another form, such as another unit. Nothing is
        stored then. With `dry_run`, the answer has the differences from this version, and nothing is stored.
        """
        dataset = self.get_object()
        form = NewVersionSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        file = form.validated_data["file"]
        name = file.name or "file.csv"
        if form.validated_data["dry_run"]:
            found = versions.preview(dataset, owner=request.user, file=file, source_name=name)
            return Response(VersionPreviewSerializer(found).data)
        try:
            version = versions.new_version(
                dataset,
                owner=request.user,
                file=file,
                source_name=name,
                as_it_is=form.validated_data["as_it_is"],
            )
        except versions.ChangedForms as error:
            raise DataError(f"{error} Send `as_it_is` to store it as it is.", problems=error.problems) from error
        return Response(VersionSerializer(version).data, status=201)

    @extend_schema(responses={200: VersionSerializer(many=True)} | PROBLEMS(401, 403, 404, 429))
    @new_version.mapping.get
    def list_versions(self, request: Request, pk: str) -> Response:
        """Return this version and the earlier ones, newest first."""
        return Response(VersionSerializer(versions.history(self.get_object(), request.user), many=True).data)

    @extend_schema(responses={200: FindingSerializer(many=True)} | PROBLEMS(401, 403, 404, 422, 429))
    @action(detail=True, methods=["get"], pagination_class=None)
    def inspection(self, request: Request, pk: str) -> Response:
        """Return the intake report: possible problems of the table, the worst first."""
        return Response(actions.findings(self.get_object()))

    @extend_schema(responses={200: reference("TableContract")} | PROBLEMS(401, 403, 404, 422, 429))
    @action(detail=True, methods=["get"], pagination_class=None)
    def contract(self, request: Request, pk: str) -> Response:
        """Return the table contract: what each column and the target mean."""
        return Response(actions.contract(self.get_object()))

    @extend_schema(
        operation_id="datasets_counts",
        responses={(200, "application/zip"): OpenApiTypes.BINARY} | PROBLEMS(401, 403, 404, 422, 429),
    )
    @action(detail=True, methods=["get"], pagination_class=None)
    def counts(self, request: Request, pk: str) -> FileResponse:
        """Return the counts of a data set of a source: `counts.json` and `counts.npz`."""
        return actions.counts_file(self.get_object())

    @extend_schema(
        responses={(200, "text/csv"): OpenApiTypes.STR} | PROBLEMS(401, 403, 404, 422, 429),
        parameters=[
            OpenApiParameter(
                "as",
                str,
                enum=["text", "read"],
                description="read: every cell as it was read; otherwise texts that a spreadsheet would take for formulas get an apostrophe",
            )
        ],
    )
    @action(detail=True, methods=["get"], pagination_class=None)
    def download(self, request: Request, pk: str) -> StreamingHttpResponse:
        dataset = self.get_object()
        lines = actions.csv_lines(dataset, for_spreadsheets=request.query_params.get("as") != "read")
        start = next(lines)  # a missing file must raise here, before the response begins
        answer = StreamingHttpResponse(chain([start], lines), content_type="text/csv; charset=utf-8")
        return as_file(answer, f"{dataset.pk}.csv")


def _parsing_choices(changes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the choices about cells in a change, in the form of `ParsingChoices.to_json`."""
    merge: dict[str, Any] = {change["name"]: {} for change in changes if change.get("merge")}
    missing = {change["name"]: change["missing_words"] for change in changes if change.get("missing_words")}
    ranks = {change["name"]: RANKS for change in changes if change.get("kind") == RANKS}
    choices = (("merge", merge), ("missing", missing), ("kinds", ranks))
    return {what: by_column for what, by_column in choices if by_column}


def _choice(dataset: Dataset, values: dict[str, Any]) -> ColumnChoice:
    changes = values.get("columns", [])
    ignored = {c["name"] for c in dataset.columns if c["role"] == "ignored"}
    for change in changes:
        if change.get("role") == "ignored":
            ignored.add(change["name"])
        elif change.get("role") == "feature":
            ignored.discard(change["name"])
    stated = {c["name"]: c["kind"] for c in changes if "kind" in c}
    kinds = {name: ColumnKind.NUMERIC if kind == RANKS else ColumnKind(kind) for name, kind in stated.items()}
    # a column that becomes a feature again needs a kind; without one, it would stay ignored
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
