"""API of sources and their counts, below /api/v1/."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from octweb.core.api import PROBLEMS, BodySerializer, Name, StrictTextField
from octweb.core.idempotency import idempotent
from octweb.datasets import reader
from octweb.datasets.choice import ColumnChoice, ReadOptions, StagedFile
from octweb.datasets.intake import ROWS
from octweb.datasets.sources import MAX_QUERY_CHARACTERS, SourceRows, chosen_rows, source_of, sources_of
from octweb.datasets.stored import first_of
from octweb.jobs.models import RunStatus
from octweb.jobs.queue import queue_position
from octweb.sources import actions
from octweb.sources.actions import SCHEMES, CountSettings
from octweb.sources.models import SourceCount
from trainer.counts.collect import MOST_BINS
from trainer.counts.sample import SAMPLE_ROWS
from trainer.counts.sets import DEEPEST
from trainer.data.folds import MOST_FOLDS
from trainer.table import ColumnKind

SHOWN_ROWS = 20


class SourceSerializer(serializers.Serializer):
    """A source of rows that the settings of the server name."""

    name = serializers.CharField()
    kind = serializers.ChoiceField(["folder", "bucket", "database"])


class TablesSerializer(serializers.Serializer):
    """Tables and views of a database, or files of a folder."""

    names = serializers.ListField(child=serializers.CharField())
    of = serializers.IntegerField(help_text="number of all; `names` has at most 1,000")


class SampledRowsSerializer(BodySerializer):
    """The rows of a source: a table or file, or a query of a database."""

    table = StrictTextField(
        required=False,
        default="",
        allow_blank=True,
        max_length=500,
        help_text="a table, a file or a subfolder; empty for all files of a folder",
    )
    query = StrictTextField(
        required=False,
        default="",
        allow_blank=True,
        max_length=MAX_QUERY_CHARACTERS,
        help_text="one SELECT of a database, which only reads",
    )


class SampleColumnSerializer(serializers.Serializer):
    """A column of a sample, as it is read."""

    name = serializers.CharField()
    kind = serializers.ChoiceField([str(kind) for kind in ColumnKind])
    missing = serializers.IntegerField(help_text="empty cells of the sample")
    distinct = serializers.IntegerField(help_text="different values of the sample")
    reason = serializers.CharField()


class SampleSerializer(serializers.Serializer):
    """A preview from a sample."""

    sample_rows = serializers.IntegerField(
        help_text=f"rows of the sample, at most {SAMPLE_ROWS}; not those of the source"
    )
    target = serializers.CharField(help_text="the column that octweb would predict")
    columns = SampleColumnSerializer(many=True)
    names = serializers.ListField(child=serializers.CharField(), help_text="all columns, in their order")
    rows = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField(allow_null=True)), help_text="the first rows"
    )


class CountProgressSerializer(serializers.Serializer):
    """Last progress that the worker has reported."""

    phase = serializers.CharField(required=False, help_text="questions: the first pass; counting: the second one")
    rows = serializers.IntegerField(required=False, help_text="rows of this pass so far")
    of = serializers.IntegerField(required=False, help_text="all rows; 0 in the first pass")
    t = serializers.FloatField(required=False, help_text="seconds since the start")


class CountSerializer(serializers.ModelSerializer):
    """A count of a source: the chosen rows, settings, and the data set that it made."""

    dataset = serializers.UUIDField(source="dataset_id", allow_null=True, help_text="train on it with `exact`")
    progress = CountProgressSerializer()
    rows = serializers.IntegerField(source="summary.rows", default=None, allow_null=True, help_text="counted rows")
    sha256 = serializers.CharField(
        source="summary.sha256",
        default=None,
        allow_null=True,
        help_text="of the counts; certificates of models state it",
    )
    queue_position = serializers.SerializerMethodField()
    owner = serializers.CharField(source="owner.username")

    class Meta:
        model = SourceCount
        fields = [
            "id", "name", "source", "table", "query", "target", "depth", "bins", "scheme", "folds", "key", "status", "queue_position", "attempt",
            "cancel_requested", "created", "started", "finished", "progress", "rows", "sha256", "error", "dataset", "owner",
        ]  # fmt: skip
        read_only_fields = fields

    def get_queue_position(self, job: SourceCount) -> int | None:
        return queue_position(job)


class NewCountSerializer(SampledRowsSerializer):
    """A request to count the rows of a source."""

    source = StrictTextField(max_length=50)
    target = StrictTextField(max_length=1000, trim_whitespace=False)
    name = Name(max_length=200)
    kinds = serializers.DictField(
        child=serializers.ChoiceField([str(kind) for kind in ColumnKind]),
        required=False,
        default=dict,
        help_text='column → kind: {"code": "categorical"}',
    )
    ignore = serializers.ListField(
        child=StrictTextField(max_length=1000, trim_whitespace=False),
        required=False,
        default=list,
        max_length=2000,
        help_text="columns to leave out",
    )
    depth = serializers.IntegerField(
        required=False, default=CountSettings.depth, min_value=1, max_value=DEEPEST, help_text="of the deepest tree"
    )
    bins = serializers.IntegerField(
        required=False,
        default=CountSettings.bins,
        min_value=2,
        max_value=MOST_BINS,
        help_text="quantiles of a numeric column",
    )
    scheme = serializers.ChoiceField(list(SCHEMES), required=False, default=CountSettings.scheme)
    folds = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=MOST_FOLDS,
        help_text="with `key`: for the accuracy on unseen rows",
    )
    key = StrictTextField(
        required=False,
        default="",
        allow_blank=True,
        max_length=1000,
        trim_whitespace=False,
        help_text="a column: rows with the same value are in one fold; no question asks it",
    )


class SourceList(APIView):
    """The sources that the caller may count."""

    @extend_schema(responses={200: SourceSerializer(many=True)} | PROBLEMS(401, 403, 429))
    def get(self, request: Request) -> Response:
        return Response([{"name": source.name, "kind": source.kind} for source in sources_of(request.user)])


class SourceTables(APIView):
    """What a source contains."""

    @extend_schema(responses={200: TablesSerializer} | PROBLEMS(401, 403, 404, 422, 429, 503))
    def get(self, request: Request, name: str) -> Response:
        return Response(reader.tables(source_of(request.user, name)))


class SourceSample(APIView):
    """A preview of rows of a source."""

    @extend_schema(
        request=SampledRowsSerializer,
        responses={200: SampleSerializer} | PROBLEMS(400, 401, 403, 404, 413, 415, 422, 429, 503),
    )
    def post(self, request: Request, name: str) -> Response:
        """Read a sample, at most 10,000 rows, and return its columns and first rows. Nothing is stored."""
        form = SampledRowsSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        rows = chosen_rows(request.user, form.validated_data | {"source": name})
        with reader.scratch() as folder:
            staged = StagedFile.from_json(found := reader.sample(rows, ReadOptions(), folder))
            first = first_of(folder / ROWS, SHOWN_ROWS)[1]
        columns = [
            {
                "name": guess.name,
                "kind": str(guess.schema.kind),
                "missing": guess.missing,
                "distinct": guess.distinct,
                "reason": guess.reason,
            }
            for guess in staged.guesses
        ]
        cells = [[None if value is None else str(value) for value in row] for row in first]
        return Response(
            {
                "sample_rows": staged.rows,
                "target": found["target"],
                "columns": columns,
                "names": list(staged.names),
                "rows": cells,
            }
        )


@extend_schema_view(
    list=extend_schema(
        responses={200: CountSerializer(many=True)} | PROBLEMS(400, 401, 403, 404, 429),
        parameters=[OpenApiParameter("status", str, enum=RunStatus.values)],
    ),
    retrieve=extend_schema(responses={200: CountSerializer} | PROBLEMS(401, 403, 404, 429)),
)
class CountViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet):
    """Counts of the caller. Finished ones are listed for 30 days; their data sets stay."""

    serializer_class = CountSerializer
    queryset = SourceCount.objects.none()
    search_fields = ("name", "source", "target")
    ordering_fields = {"created": "created", "name": "name", "status": "status", "finished": "finished"}

    def get_queryset(self) -> QuerySet:
        jobs = SourceCount.objects.visible_to(self.request.user).select_related("owner")
        if status := self.request.query_params.get("status"):
            if status not in RunStatus.values:
                raise ValidationError({"status": f"'{status[:40]}' is not one of {', '.join(RunStatus.values)}."})
            jobs = jobs.filter(status=status)
        return jobs

    def get_object(self) -> SourceCount:
        return SourceCount.objects.select_related("owner").get_for(self.request, self.kwargs["pk"])

    @extend_schema(
        request=NewCountSerializer,
        responses={201: CountSerializer} | PROBLEMS(400, 401, 403, 404, 409, 413, 415, 422, 429, 503),
    )
    @idempotent
    def create(self, request: Request) -> Response:
        """Queue a count. A sample is read first, so a wrong table, query or column is refused at once."""
        form = NewCountSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        job = _start(request.user, form.validated_data)
        return Response(CountSerializer(job).data, status=201)

    @extend_schema(request=None, responses={200: CountSerializer} | PROBLEMS(401, 403, 404, 409, 429))
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        return Response(CountSerializer(actions.cancel(self.get_object())).data)


def _start(user: Any, values: dict[str, Any]) -> SourceCount:
    rows: SourceRows = chosen_rows(user, values)
    settings = CountSettings(**{name: values[name] for name in ("depth", "bins", "scheme", "folds", "key")})
    actions.check_settings(rows, values["target"], settings)
    with reader.scratch() as folder:
        staged = StagedFile.from_json(reader.sample(rows, ReadOptions(), folder))
    kinds = {name: ColumnKind(kind) for name, kind in values["kinds"].items()}
    unknown = sorted({*kinds, *values["ignore"]} - {*staged.names, *(guess.name for guess in staged.guesses)})
    if unknown:
        raise ValidationError({"kinds": f"There is no column '{unknown[0][:80]}'. Take a column of the table."})
    return actions.start(
        owner=user,
        rows=rows,
        staged=staged,
        target=values["target"],
        name=values["name"],
        choice=ColumnChoice(target=values["target"], kinds=kinds, ignore=values["ignore"] or None),
        settings=settings,
    )
