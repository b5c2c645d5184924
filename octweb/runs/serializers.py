"""Serializers of runs and methods."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from octweb.core.api import BodySerializer, Name, StrictTextField
from octweb.core.model_schema import reference
from octweb.datasets.models import Dataset
from octweb.registry.models import TreeModel
from octweb.runs import actions
from octweb.runs.models import TrainingRun
from trainer.data.folds import MAX_HELD_OUT_SHARE, MOST_FOLDS

GROUP_HELP = "a column of the file: rows with the same value are held out together and in one fold; no question asks it"
TIME_HELP = "a column of dates or numbers: the last rows are held out, and folds train on earlier rows only"
WEIGHT_HELP = "a column of numbers that are not negative: how much each row counts; no question asks it"


def column_field(help_text: str) -> serializers.CharField:
    """Return the field for an optional column name, which may begin or end with spaces."""
    return serializers.CharField(
        required=False, allow_blank=True, default="", max_length=1000, trim_whitespace=False, help_text=help_text
    )


@extend_schema_field(reference("SearchProgress"))
class SearchProgressField(serializers.DictField):
    """A line of the progress file."""


@extend_schema_field(reference("TrainRecord"))
class TrainRecordField(serializers.DictField):
    """The JSON of `train`."""


class RunSerializer(serializers.ModelSerializer):
    """A training run."""

    dataset = serializers.UUIDField(source="dataset_id")
    model = serializers.UUIDField(source="model_id", allow_null=True)
    warm_start = serializers.UUIDField(source="warm_start_id", allow_null=True)
    parameters = serializers.DictField()
    progress = SearchProgressField(
        help_text="the newest line; `t`: seconds since the search began, the folds after it included; "
        "`compile_seconds`: seconds of compiling, which `t` leaves out"
    )
    summary = TrainRecordField(
        help_text="the JSON of `train`; `seconds`: the time of the search, as all pages show it; "
        "`compile_seconds`: seconds of compiling, which neither `seconds` nor the time limit counts"
    )
    owner = serializers.CharField(source="owner.username")
    queue_position = serializers.SerializerMethodField()

    class Meta:
        model = TrainingRun
        fields = [
            "id", "name", "dataset", "method", "parameters", "test_share", "folds", "group", "time", "weight", "warm_start", "status", "queue_position", "attempt",
            "cancel_requested", "created", "started", "finished", "progress", "summary", "error", "model", "owner",
        ]  # fmt: skip
        read_only_fields = fields

    def get_queue_position(self, run: TrainingRun) -> int | None:
        return actions.queue_position(run)


OBJECTS = ("costs", "column_price")  # a request may send these parameters as JSON objects


class NewRunSerializer(BodySerializer):
    """A request for a new run."""

    dataset = serializers.UUIDField()
    method = StrictTextField(max_length=50)
    parameters = serializers.DictField(child=serializers.JSONField(allow_null=True), required=False, default=dict)
    test_share = serializers.FloatField(required=False, default=0.0, min_value=0, max_value=MAX_HELD_OUT_SHARE)
    folds = serializers.IntegerField(required=False, default=0, min_value=0, max_value=MOST_FOLDS)
    group = column_field(GROUP_HELP)
    time = column_field(TIME_HELP)
    weight = column_field(WEIGHT_HELP)
    name = Name(max_length=200)
    warm_start = serializers.UUIDField(required=False, default=None, allow_null=True)

    def validate_parameters(self, values: dict[str, Any]) -> dict[str, Any]:
        """Refuse lists. Refuse objects, except for costs and column prices."""
        for name, value in values.items():
            if isinstance(value, list) or (isinstance(value, dict) and name not in OBJECTS):
                raise serializers.ValidationError(f"'{name}' must be a number, a text, true or false.")
        return values

    def create(self, validated_data: dict[str, Any]) -> TrainingRun:
        user = self.context["request"].user
        dataset = Dataset.objects.get_changeable(user, validated_data.pop("dataset"))
        start = validated_data.pop("warm_start")
        model = None if start is None else TreeModel.objects.get_visible(user, start)
        key = self.context.get("key", "")
        return actions.enqueue(owner=user, dataset=dataset, warm_start=model, key=key, **validated_data)


class RunAgainSerializer(BodySerializer):
    """The data set of a repeated run."""

    dataset = serializers.UUIDField(required=False, help_text="its id; without it, the data set of the run")


class ProgressSerializer(serializers.Serializer):
    """Progress lines from `since` on. `next` is the `since` of the next call."""

    status = serializers.CharField()
    attempt = serializers.IntegerField()
    next = serializers.IntegerField()
    records = serializers.ListField(child=SearchProgressField())


class MethodSerializer(serializers.Serializer):
    """The declaration of a method."""

    id = serializers.CharField()
    title = serializers.CharField()
    summary = serializers.CharField()
    paper = serializers.CharField()
    guarantee = serializers.CharField()
    claim = serializers.CharField()
    splits = serializers.ListField(child=serializers.CharField())
    binary = serializers.BooleanField()
    two_classes = serializers.BooleanField()
    warm_start = serializers.BooleanField()
    size_hint = serializers.CharField(allow_blank=True)
    parameters = serializers.ListField(child=serializers.DictField())
