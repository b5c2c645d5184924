"""API of experiments, below /api/v1/."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db import transaction
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from octweb.audit import actions as audit
from octweb.core.api import PROBLEMS, BodySerializer, Name, StrictTextField
from octweb.core.idempotency import idempotent
from octweb.core.model_schema import reference
from octweb.core.ownership import check_deletable
from octweb.datasets.models import Dataset
from octweb.experiments import actions
from octweb.experiments.board import SHOWN, BoardLine, board, elapsed, held_out, interval_of, points
from octweb.experiments.models import Candidate, Experiment
from octweb.experiments.plan import KINDS
from octweb.experiments.wording import honest_words, reasons, reasons_against
from octweb.figures.experiment import experiment_figure
from octweb.runs.serializers import GROUP_HELP, TIME_HELP, WEIGHT_HELP, column_field
from trainer.data.folds import MAX_HELD_OUT_SHARE, MOST_FOLDS


class TrialSerializer(serializers.Serializer):
    """A method and its settings."""

    method = StrictTextField(max_length=50)
    parameters = serializers.DictField(child=serializers.JSONField(allow_null=True), required=False, default=dict)

    def validate_parameters(self, values: dict[str, Any]) -> dict[str, Any]:
        for name, value in values.items():
            if isinstance(value, list | dict):
                raise serializers.ValidationError(f"'{name}' must be a number, a text, true or false.")
        return values


class NewExperimentSerializer(BodySerializer):
    """A new experiment. Only the data set is required."""

    dataset = serializers.UUIDField()
    name = Name(max_length=200)
    kinds = serializers.ListField(
        child=serializers.ChoiceField(KINDS),
        required=False,
        default=list(KINDS),
        allow_empty=False,
        help_text="what one question of a tree may look at",
    )
    time_limit = serializers.FloatField(required=False, default=actions.LONGEST_FIT, help_text="seconds of one fit")
    folds = serializers.IntegerField(required=False, default=actions.FOLDS, min_value=2, max_value=MOST_FOLDS)
    seed = serializers.IntegerField(required=False, default=0, min_value=0, max_value=2**31 - 1)
    test_share = serializers.FloatField(
        required=False,
        default=None,
        allow_null=True,
        min_value=0,
        max_value=MAX_HELD_OUT_SHARE,
        help_text="rows held out of everything; null: chosen to fit the number of rows",
    )
    nested = serializers.BooleanField(
        required=False, default=None, allow_null=True, help_text="leave out pairs of folds, too"
    )
    group = column_field(GROUP_HELP)
    time = column_field(TIME_HELP)
    weight = column_field(WEIGHT_HELP)
    costs = serializers.JSONField(
        required=False,
        default="",
        help_text="costs or rewards of answers, as in `parameters` of a run, for every candidate that states none",
    )
    candidates = TrialSerializer(
        many=True, required=False, default=list, help_text="instead of those that are chosen for the data"
    )

    def validate_costs(self, value: Any) -> str | dict[str, Any]:
        """Raise ValidationError unless the value is a text or an object."""
        if not isinstance(value, (str, dict)):
            raise serializers.ValidationError("must be a text such as 'bad>good=5', or a JSON object.")
        return value

    def create(self, validated_data: dict[str, Any]) -> Experiment:
        user = self.context["request"].user
        dataset = Dataset.objects.get_changeable(user, validated_data.pop("dataset"))
        return actions.start(owner=user, dataset=dataset, **validated_data)


class CandidateSerializer(serializers.Serializer):
    """A candidate on the leaderboard. Shares are in [0, 1], and null while unknown."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    method = serializers.CharField()
    parameters = serializers.DictField()
    asks = serializers.CharField(help_text="what one question looks at")
    status = serializers.CharField()
    fits_done = serializers.IntegerField()
    accuracies = serializers.ListField(child=serializers.FloatField(), help_text="by fold")
    accuracy = serializers.FloatField(allow_null=True)
    standard_error = serializers.FloatField(allow_null=True)
    cost_per_row = serializers.FloatField(allow_null=True, help_text="of unseen rows; null without costs of answers")
    cost_interval = serializers.ListField(
        child=serializers.FloatField(), allow_null=True, help_text="95 % interval of the cost per unseen row"
    )
    cost_standard_error = serializers.FloatField(
        allow_null=True, help_text="of the mean cost per row of the folds; null unless candidates are ranked by cost"
    )
    constant_cost_per_row = serializers.FloatField(
        allow_null=True, help_text="what the best single answer of the training rows costs there"
    )
    cost_unit = serializers.CharField(help_text="empty without costs, or without a unit")
    leaves = serializers.IntegerField(allow_null=True, help_text="of the tree on all training rows")
    fold_leaves = serializers.ListField(child=serializers.IntegerField())
    train_accuracy = serializers.FloatField(allow_null=True)
    claim = serializers.DictField(allow_null=True)
    seconds = serializers.FloatField(allow_null=True)
    recommended = serializers.BooleanField()
    error = serializers.CharField()
    model = serializers.UUIDField(allow_null=True)
    run = serializers.UUIDField(allow_null=True, help_text="the run that trains it on all rows")


class OtherSerializer(serializers.Serializer):
    """A finished candidate that is not recommended, and the reason."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    reason = serializers.CharField()


class ExperimentSerializer(serializers.Serializer):
    """An experiment with its leaderboard."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    dataset = serializers.UUIDField()
    status = serializers.CharField()
    created = serializers.DateTimeField()
    folds = serializers.IntegerField()
    seed = serializers.IntegerField()
    test_share = serializers.FloatField()
    nested = serializers.BooleanField()
    group = serializers.CharField()
    time = serializers.CharField()
    weight = serializers.CharField()
    time_limit = serializers.FloatField()
    tried = serializers.IntegerField()
    seconds = serializers.FloatField(allow_null=True)
    ranked_by = serializers.ChoiceField(
        ["accuracy", "cost_per_row"], help_text="cost_per_row if all candidates have the same costs of answers"
    )
    recommended = serializers.UUIDField(allow_null=True, help_text="the simplest within one standard error of the best")
    highest = serializers.UUIDField(
        allow_null=True, help_text="the best: highest accuracy or lowest cost; of several one, see `tied`"
    )
    tied = serializers.ListField(child=serializers.UUIDField(), help_text="all candidates that are equally good")
    base_rate = serializers.FloatField(
        allow_null=True, help_text="accuracy on the same rows if all get the most frequent class; null while not known"
    )
    reasons = serializers.ListField(child=serializers.CharField())
    others = OtherSerializer(many=True, help_text="why each other finished candidate is not recommended")
    estimate = serializers.DictField(
        allow_null=True,
        help_text="correct, n, accuracy and its 95 % interval on rows that took no part in the choice; with costs also cost_per_row and cost_interval; null while not known",
    )
    estimate_words = serializers.CharField()
    skipped = serializers.ListField(child=serializers.DictField())
    candidates = CandidateSerializer(many=True)
    owner = serializers.CharField()


def as_json(experiment: Experiment) -> dict[str, Any]:
    """Return the members of `ExperimentSerializer` for an experiment."""
    leaderboard = board(experiment)
    estimate: dict[str, Any] | None = None
    if leaderboard.honest is not None:
        estimate = {
            "correct": leaderboard.honest.correct,
            "n": leaderboard.honest.n,
            "accuracy": leaderboard.honest.accuracy,
        }
        estimate["interval"] = leaderboard.honest.interval
        if leaderboard.honest.cost_per_row is not None:
            estimate["cost_per_row"] = leaderboard.honest.cost_per_row
            estimate["cost_interval"] = leaderboard.honest.cost_interval
    elif test := held_out(experiment):
        estimate = {name: test[name] for name in ("correct", "n", "accuracy")}
        estimate["interval"] = interval_of(test)
        estimate |= {name: test[name] for name in ("cost_per_row", "cost_interval") if name in test}
    members = (
        "id",
        "name",
        "created",
        "folds",
        "seed",
        "test_share",
        "nested",
        "group",
        "time",
        "weight",
        "time_limit",
        "skipped",
    )
    return {name: getattr(experiment, name) for name in members} | {
        "dataset": experiment.dataset_id,
        "status": leaderboard.status,
        "tried": leaderboard.tried,
        "seconds": elapsed(experiment, leaderboard.lines),
        "ranked_by": leaderboard.measure.name,
        "recommended": leaderboard.chosen.label if leaderboard.chosen else None,
        "highest": leaderboard.highest.label if leaderboard.highest else None,
        "tied": [line.label for line in leaderboard.tied],
        "base_rate": leaderboard.base_rate,
        "reasons": reasons(leaderboard),
        "others": reasons_against(leaderboard),
        "estimate": estimate,
        "estimate_words": honest_words(leaderboard),
        "candidates": [_candidate_json(line) for line in leaderboard.sorted("accuracy")],
        "owner": experiment.owner.username,
    }


def _candidate_json(line: BoardLine) -> dict[str, Any]:
    candidate = line.candidate
    score = line.score
    return {
        "id": candidate.pk, "name": candidate.name, "method": candidate.method, "parameters": candidate.parameters,
        "asks": line.asks, "status": candidate.status, "fits_done": line.done, "accuracies": line.accuracies,
        "accuracy": score and score.accuracy, "standard_error": score and replace(score, costs=()).error,
        "cost_per_row": line.cost and line.cost.per_row, "constant_cost_per_row": line.cost and line.cost.constant_per_row,
        "cost_interval": line.cost and line.cost.interval, "cost_standard_error": score.error if score and score.costs else None,
        "cost_unit": line.cost.unit if line.cost else "", "leaves": line.leaves,
        "fold_leaves": line.fold_leaves, "train_accuracy": line.train_accuracy, "claim": line.claim, "seconds": line.seconds,
        "recommended": line.recommended, "error": line.failed, "model": candidate.model_id, "run": candidate.retrained_id,
    }  # fmt: skip


@extend_schema_view(destroy=extend_schema(responses={204: None} | PROBLEMS(401, 403, 404, 409, 429)))
class ExperimentViewSet(mixins.DestroyModelMixin, viewsets.GenericViewSet):
    """Experiments of the caller: many methods and tree sizes on the same folds of a data set."""

    serializer_class = ExperimentSerializer
    queryset = Experiment.objects.none()
    search_fields = (
        "name",
        "dataset__name",
    )
    ordering_fields = {"created": "created", "name": "name"}

    def get_object(self) -> Experiment:
        experiments = Experiment.objects.select_related("dataset", "owner", "chosen")
        return experiments.get_for(self.request, self.kwargs["pk"])

    @extend_schema(responses={200: ExperimentSerializer(many=True)} | PROBLEMS(400, 401, 403, 404, 429))
    def list(self, request: Request) -> Response:
        experiments = Experiment.objects.visible_to(request.user).select_related("dataset", "owner")
        experiments = experiments.defer("dataset__columns", "dataset__reading").prefetch_related(SHOWN)
        page = self.paginate_queryset(self.filter_queryset(experiments))
        return self.get_paginated_response(ExperimentSerializer([as_json(e) for e in page or ()], many=True).data)

    @extend_schema(responses={200: ExperimentSerializer} | PROBLEMS(401, 403, 404, 429))
    def retrieve(self, request: Request, pk: str) -> Response:
        return self._answer(self.get_object())

    @extend_schema(
        request=NewExperimentSerializer,
        responses={201: ExperimentSerializer} | PROBLEMS(400, 401, 403, 404, 409, 413, 415, 422, 429),
    )
    @idempotent
    def create(self, request: Request) -> Response:
        form = NewExperimentSerializer(data=request.data, context={"request": request})
        form.is_valid(raise_exception=True)
        return self._answer(form.save(), 201)

    def perform_destroy(self, instance: Experiment) -> None:
        check_deletable(self.request.user, instance)
        with transaction.atomic():
            actions.delete(instance)
            audit.record("deleted", instance, by=self.request.user)

    @extend_schema(request=None, responses={200: ExperimentSerializer} | PROBLEMS(401, 403, 404, 409, 429))
    @action(detail=True, methods=["post"])
    def stop(self, request: Request, pk: str) -> Response:
        return self._answer(actions.stop(self.get_object()))

    @extend_schema(request=None, responses={200: ExperimentSerializer} | PROBLEMS(401, 403, 404, 409, 429))
    @action(detail=True, methods=["post"], url_path="continue")
    def go_on(self, request: Request, pk: str) -> Response:
        return self._answer(actions.go_on(self.get_object()))

    @extend_schema(request=None, responses={200: ExperimentSerializer} | PROBLEMS(401, 403, 404, 409, 429))
    @action(detail=True, methods=["post"], url_path=r"candidates/(?P<key>[0-9a-f-]{36})/open")
    def open(self, request: Request, pk: str, key: str) -> Response:
        """Make the tree of a candidate a model. The first opened candidate is evaluated on the held-out rows."""
        actions.open_candidate(self._candidate(key))
        return self._answer(self.get_object())

    @extend_schema(request=None, responses={200: ExperimentSerializer} | PROBLEMS(401, 403, 404, 409, 422, 429))
    @action(detail=True, methods=["post"], url_path=r"candidates/(?P<key>[0-9a-f-]{36})/retrain")
    def retrain(self, request: Request, pk: str, key: str) -> Response:
        """Queue a run with the settings of a candidate on all rows."""
        actions.retrain(self._candidate(key), owner=request.user)
        return self._answer(self.get_object())

    @extend_schema(responses={200: reference("Figure")} | PROBLEMS(401, 403, 404, 429))
    @action(detail=True, methods=["get"], url_path="figures/accuracy")
    def accuracy(self, request: Request, pk: str) -> Response:
        """Plotly figure: accuracy or cost per unseen row against leaves, one point per candidate, with a one-standard-error band."""
        leaderboard = board(self.get_object())
        return Response(experiment_figure(points(leaderboard), leaderboard.base, leaderboard.measure))

    def _candidate(self, key: str) -> Candidate:
        candidates = Candidate.objects.filter(experiment=self.get_object()).select_related(
            "experiment__dataset", "owner"
        )
        return candidates.get_for(self.request, key)

    def _answer(self, experiment: Experiment, status: int = 200) -> Response:
        experiment.refresh_from_db()
        return Response(ExperimentSerializer(as_json(experiment)).data, status=status)
