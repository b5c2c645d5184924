"""API of workbenches, below /api/v1/."""

from __future__ import annotations

import time
from typing import Any

from django.db import transaction
from django.db.models import F, Prefetch, QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    extend_schema,
    extend_schema_field,
    extend_schema_view,
    inline_serializer,
)
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response

from octweb.audit import actions as audit
from octweb.core.api import PROBLEMS, BodySerializer, Name
from octweb.core.idempotency import idempotent
from octweb.core.model_schema import reference
from octweb.core.ownership import check_deletable
from octweb.datasets.models import Dataset
from octweb.figures.good_trees import questions_figure, tolerance_figure
from octweb.registry.models import TreeModel
from octweb.workbench import actions, explore
from octweb.workbench.models import Step, StepKind, Workbench
from octweb.workbench.page import model_of
from trainer.data.folds import MAX_HELD_OUT_SHARE
from trainer.editing.words import MAX_REASON_CHARACTERS
from trainer.families.exact.rashomon.chosen import RATES
from trainer.registry import editable_ids
from trainer.tree.render.figure import tree_figure
from trainer.tree.render.palette import without_legend

MAX_WAIT_SECONDS = 10.0  # seconds that a call may wait for its answer
LOOK = 0.02
WAIT = OpenApiParameter("wait", float, description=f"seconds to wait for the answer, at most {MAX_WAIT_SECONDS:g}")
STEP = OpenApiParameter("step", int, description="the step that a page shows; its figure has an address of its own")
# For a list of workbenches, one query loads the current step of each.
CURRENT = Prefetch(
    "steps",
    queryset=Step.objects.filter(number=F("workbench__position")).order_by().defer("document"),
    to_attr="current_steps",
)
BAD = PROBLEMS(400, 401, 403, 404, 409, 413, 415, 422, 429)


@extend_schema_field(reference("MeasuredRows"))
class MeasuredRowsField(serializers.DictField):
    """Metrics of a tree on a set of rows."""


UNSEEN = inline_serializer(
    "Unseen",
    {
        "test": MeasuredRowsField(allow_null=True, help_text="null: no rows were held out"),
        "looks": serializers.IntegerField(help_text="how often this was read"),
    },
)


class WishesField(serializers.ListField):
    """Wishes as texts."""

    child = serializers.CharField(max_length=actions.MOST_TEXT)

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**({"required": False, "max_length": actions.MOST_WISHES} | arguments))


class StepSerializer(serializers.ModelSerializer):
    """One request to a workbench, with its answer once it is done."""

    class Meta:
        model = Step
        fields = ["number", "parent", "kind", "wishes", "request", "state", "result", "error", "created", "finished"]
        read_only_fields = fields


class WorkbenchSerializer(serializers.ModelSerializer):
    """A workbench. `step` is its current step."""

    step = serializers.SerializerMethodField()
    owner = serializers.CharField(source="owner.username")

    class Meta:
        model = Workbench
        fields = [
            "id", "name", "dataset", "base", "method", "parameters", "test_share", "group", "time", "weight", "status", "position", "unseen_looks", "created",
            "used", "error", "step", "owner",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(StepSerializer(allow_null=True))
    def get_step(self, bench: Workbench) -> Any:
        prefetched = getattr(bench, "current_steps", None)
        step = actions.current(bench) if prefetched is None else next(iter(prefetched), None)
        return None if step is None else StepSerializer(step).data


class NewWorkbenchSerializer(BodySerializer):
    """A new workbench: a model to edit, or a data set to begin with."""

    model = serializers.UUIDField(required=False)
    dataset = serializers.UUIDField(required=False)
    method = serializers.ChoiceField(choices=editable_ids(), required=False)
    parameters = serializers.DictField(child=serializers.JSONField(allow_null=True), required=False, default=dict)
    test_share = serializers.FloatField(required=False, min_value=0, max_value=MAX_HELD_OUT_SHARE)
    name = Name(max_length=200)

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        if ("model" in values) == ("dataset" in values):
            raise serializers.ValidationError({"model": "give either a model or a data set, not both and not none."})
        if "model" in values and "method" in values:
            raise serializers.ValidationError(
                {"method": "the workbench takes the method of the model. Leave this out."}
            )
        return values

    def create(self, validated_data: dict[str, Any]) -> Workbench:
        user = self.context["request"].user
        values = dict(validated_data)
        if "model" in values:
            values["model"] = TreeModel.objects.select_related("family", "dataset").get_changeable(
                user, values["model"]
            )
        else:
            values["dataset"] = Dataset.objects.get_changeable(user, values["dataset"])
        return actions.open_for(owner=user, **values)


class EditSerializer(BodySerializer):
    """All wishes, or the wishes to add and to drop."""

    wishes = WishesField()
    add = WishesField(default=list)
    drop = WishesField(default=list)
    reasons = serializers.DictField(
        child=serializers.CharField(max_length=MAX_REASON_CHARACTERS),
        required=False,
        default=dict,
        help_text="why somebody has a wish, by the text of the wish: kept with it, and listed in the model file",
    )


class PricesSerializer(BodySerializer):
    """The place whose questions are priced, in the best tree with the current wishes."""

    place = serializers.RegexField(r"^(root|[yn]{1,20})$", default="root")


class GoodTreesSerializer(BodySerializer):
    """The tolerance of good trees as decimal text, and filters.

    The tolerance is one of `slack` (a share of the least cost), `slack_rows` and `slack_cost`.
    """

    slack = serializers.CharField(required=False, max_length=40)
    slack_rows = serializers.CharField(required=False, max_length=40, help_text="without costs of answers")
    slack_cost = serializers.CharField(
        required=False, max_length=40, help_text="in the unit of the costs, if answers have costs"
    )
    must = WishesField(default=list)
    without = WishesField(default=list)
    max_leaves = serializers.IntegerField(required=False, allow_null=True, min_value=1)
    recalls = serializers.DictField(child=serializers.CharField(max_length=40), required=False, default=dict)
    difference = serializers.CharField(
        required=False,
        max_length=40,
        help_text="the largest allowed difference between the rates of two groups; needs `groups`",
    )
    groups = serializers.CharField(required=False, max_length=actions.MOST_TEXT, help_text="the column with the groups")
    rate = serializers.ChoiceField(
        choices=RATES,
        required=False,
        default=RATES[0],
        help_text="rows with the favoured answer, among all rows of a group (parity) or those of that class (opportunity)",
    )
    favoured = serializers.CharField(
        required=False,
        max_length=actions.MOST_TEXT,
        help_text="the answer whose rates are compared; default: the last class",
    )
    agree_rows = serializers.CharField(
        required=False,
        max_length=10 * actions.MOST_TEXT,
        help_text="'all', or lines of the file as in '3, 10-20': keep the trees that answer there as the tree shown now",
    )
    listed = serializers.IntegerField(required=False, default=10, min_value=0, max_value=1000)
    disputed = serializers.IntegerField(
        required=False,
        default=10,
        min_value=0,
        max_value=1000,
        help_text="how many rows are listed whose answer depends on which good tree was chosen, the most disputed first",
    )
    sample = serializers.IntegerField(required=False, default=0, min_value=0, max_value=1000)
    distinct = serializers.BooleanField(
        required=False,
        default=False,
        help_text="also count with questions that split the rows in the same way taken as one (slow)",
    )

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        if sum(name in values for name in ("slack", "slack_rows", "slack_cost")) != 1:
            raise serializers.ValidationError(
                {
                    "slack": "give one of slack (a share of the least cost), slack_rows (a number of rows) and slack_cost (an amount)."
                }
            )
        return values


class SaveSerializer(BodySerializer):
    """The title of the new version."""

    title = Name(max_length=200)


class SavedSerializer(serializers.Serializer):
    """The new version."""

    model = serializers.UUIDField()
    name = serializers.CharField()
    version = serializers.IntegerField()
    proof_step = serializers.IntegerField(
        allow_null=True, help_text="the step that writes the proof of the version: wait for it at edits/{number}/"
    )


@extend_schema_view(
    list=extend_schema(responses={200: WorkbenchSerializer(many=True)} | PROBLEMS(400, 401, 403, 404, 429)),
    retrieve=extend_schema(responses={200: WorkbenchSerializer} | PROBLEMS(401, 403, 404, 429)),
    destroy=extend_schema(responses={204: None} | PROBLEMS(401, 403, 404, 409, 429)),
)
class WorkbenchViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, mixins.DestroyModelMixin, viewsets.GenericViewSet
):
    """Workbenches of the caller.

    In a workbench, trees are edited wish by wish. Each tree has a proof, and each wish a price.
    """

    serializer_class = WorkbenchSerializer
    queryset = Workbench.objects.none()
    search_fields = ("name", "method")
    ordering_fields = {"created": "created", "name": "name", "used": "used"}

    def get_queryset(self) -> QuerySet:
        benches = Workbench.objects.visible_to(self.request.user).select_related("owner")
        return benches.defer("log", "progress", "summary").prefetch_related(CURRENT)

    def get_object(self) -> Workbench:
        bench = Workbench.objects.select_related("owner", "base__family", "dataset").get_for(
            self.request, self.kwargs["pk"]
        )
        if self.request.method not in SAFE_METHODS:
            actions.wake_if_needed(bench)
        return bench

    def perform_destroy(self, instance: Workbench) -> None:
        check_deletable(self.request.user, instance)
        with transaction.atomic():
            actions.delete(instance)
            audit.record("deleted", instance, by=self.request.user)

    @extend_schema(request=NewWorkbenchSerializer, responses={201: WorkbenchSerializer} | BAD, parameters=[WAIT])
    @idempotent
    def create(self, request: Request) -> Response:
        bench = self._read(NewWorkbenchSerializer).save()
        self._wait(bench.steps.get(number=bench.steps.last().number))
        bench.refresh_from_db()
        return Response(WorkbenchSerializer(bench).data, status=201)

    @extend_schema(
        operation_id="workbenches_edits_list",
        responses={200: StepSerializer(many=True)} | PROBLEMS(401, 403, 404, 429),
    )
    @action(detail=True, methods=["get"], filter_backends=[], pagination_class=None)
    def edits(self, request: Request, pk: str | None = None) -> Response:
        """List all steps."""
        return Response(StepSerializer(self.get_object().steps.all(), many=True).data)

    @extend_schema(request=EditSerializer, responses={201: StepSerializer} | BAD, parameters=[WAIT])
    @edits.mapping.post
    @idempotent
    def edit(self, request: Request, pk: str | None = None) -> Response:
        """Request the best tree with other wishes. The search runs in the background."""
        bench = self.get_object()
        values = self._read(EditSerializer).validated_data
        if "wishes" in values and (values["add"] or values["drop"]):
            raise ValidationError({"wishes": "give either wishes (all of them), or add and drop."})
        return self._answer(actions.edit(bench, **values))

    @extend_schema(
        responses={200: StepSerializer} | PROBLEMS(401, 403, 404, 429),
        parameters=[WAIT, OpenApiParameter("number", OpenApiTypes.INT, OpenApiParameter.PATH)],
    )
    @action(detail=True, methods=["get"], url_path=r"edits/(?P<number>\d{1,9})")
    def step(self, request: Request, pk: str | None = None, number: str = "0") -> Response:
        """Return one step. With `wait`, wait for its answer."""
        step_record = self.get_object().steps.filter(number=int(number)).first()
        if step_record is None:
            raise NotFound(f"There is no step {number}. The list of edits has the numbers.")
        return self._answer(step_record, 200)

    @extend_schema(request=PricesSerializer, responses={201: StepSerializer} | BAD, parameters=[WAIT])
    @action(detail=True, methods=["post"])
    @idempotent
    def prices(self, request: Request, pk: str | None = None) -> Response:
        """Request the price of each possible question at a place."""
        bench = self.get_object()
        values = self._read(PricesSerializer).validated_data
        return self._answer(actions.ask(bench, StepKind.PRICES, wishes=actions.readable_wishes(bench), request=values))

    @extend_schema(request=GoodTreesSerializer, responses={201: StepSerializer} | BAD, parameters=[WAIT])
    @action(detail=True, methods=["post"], url_path="good-trees")
    @idempotent
    def good_trees(self, request: Request, pk: str | None = None) -> Response:
        """Request all trees that are nearly as good as the best one, counted exactly."""
        bench = self.get_object()
        values = self._read(GoodTreesSerializer).validated_data
        return self._answer(actions.ask_good_trees(bench, values))

    @extend_schema(responses={200: reference("Figure")} | PROBLEMS(401, 403, 404, 429), parameters=[STEP])
    @action(detail=True, methods=["get"], url_path="figures/tolerance")
    def tolerance(self, request: Request, pk: str | None = None) -> Response:
        """Plotly figure of the number of good trees within each tolerance, from the newest count."""
        tolerance = self._good("tolerance")
        return Response(tolerance_figure(tolerance, best_rows=explore.best_rows(self.get_object())))

    @extend_schema(responses={200: reference("Figure")} | PROBLEMS(401, 403, 404, 429), parameters=[STEP])
    @action(detail=True, methods=["get"], url_path="figures/questions")
    def questions(self, request: Request, pk: str | None = None) -> Response:
        """Plotly figure (icicle) of the columns that good trees ask first, and then on both sides, from the newest count."""
        return Response(questions_figure(self._good("first_columns")))

    @extend_schema(
        responses={200: reference("Figure")} | PROBLEMS(401, 403, 404, 429),
        parameters=[STEP, OpenApiParameter("number", OpenApiTypes.INT, OpenApiParameter.PATH)],
    )
    @action(detail=True, methods=["get"], url_path=r"figures/good-trees/(?P<number>\d{1,4})")
    def good_tree(self, request: Request, pk: str | None = None, number: str = "1") -> Response:
        """Plotly figure of a listed good tree. Number 1 is the best."""
        tree = explore.listed_tree(self.get_object(), int(number))
        if tree is None:
            raise NotFound(
                f"No good tree has the number {int(number)}. Count good trees first, or take a smaller number."
            )
        return Response(without_legend(tree_figure(tree)))

    @extend_schema(responses={200: reference("Figure")} | PROBLEMS(401, 403, 404, 429))
    @action(detail=True, methods=["get"], url_path="figures/draft")
    def draft(self, request: Request, pk: str | None = None) -> Response:
        """Plotly figure of the current tree.

        If its search has no tree yet, the figure shows the last tree before it.
        """
        bench = self.get_object()
        shown_step = actions.last_tree(bench, actions.current(bench))
        if shown_step is None:
            raise NotFound("No tree has been found yet. Wait for the first answer.")
        return Response(tree_figure(model_of(shown_step).tree))

    def _good(self, part: str) -> Any:
        """Return a part of the newest result on good trees. Raises NotFound if there is none."""
        step = explore.good_step(self.get_object())
        if step is None or not step.result.get(part):
            raise NotFound(
                "No good trees have been counted yet. Count them first: POST to /api/v1/workbenches/ID/good-trees/."
            )
        return step.result[part]

    @extend_schema(request=None, responses={200: StepSerializer} | BAD)
    @action(detail=True, methods=["post"])
    def undo(self, request: Request, pk: str | None = None) -> Response:
        """Go back to the step that was edited."""
        return self._answer(actions.undo(self.get_object()), 200)

    @extend_schema(request=None, responses={200: StepSerializer} | BAD)
    @action(detail=True, methods=["post"])
    def redo(self, request: Request, pk: str | None = None) -> Response:
        """Go forward to the step that was undone."""
        return self._answer(actions.redo(self.get_object()), 200)

    @extend_schema(request=None, responses={200: WorkbenchSerializer} | BAD)
    @action(detail=True, methods=["post"])
    def stop(self, request: Request, pk: str | None = None) -> Response:
        """Let running searches end with their best trees so far."""
        bench = self.get_object()
        actions.stop(bench)
        return Response(WorkbenchSerializer(bench).data)

    @extend_schema(request=None, responses={200: UNSEEN} | BAD)
    @action(detail=True, methods=["post"])
    def unseen(self, request: Request, pk: str | None = None) -> Response:
        """Return the accuracy of the current tree on unseen rows.

        Each look is counted, because it weakens these rows as a test.
        """
        bench = self.get_object()
        return Response({"test": actions.look_at_unseen(bench), "looks": bench.unseen_looks})

    @extend_schema(request=SaveSerializer, responses={201: SavedSerializer} | BAD)
    @action(detail=True, methods=["post"])
    @idempotent
    def save(self, request: Request, pk: str | None = None) -> Response:
        """Save the current tree as the next version of the model. A step of the workbench writes its proof."""
        bench = self.get_object()
        model = actions.save_version(bench, **self._read(SaveSerializer).validated_data)
        proof = actions.proof_step(bench, model)
        saved = {"model": model.pk, "name": model.family.name, "version": model.version}
        return Response(saved | {"proof_step": None if proof is None else proof.number}, status=201)

    def _read(self, form: type[serializers.Serializer]) -> Any:
        read = form(data=self.request.data, context={"request": self.request})
        read.is_valid(raise_exception=True)
        return read

    def _answer(self, step: Step, status: int = 201) -> Response:
        return Response(StepSerializer(self._wait(step)).data, status=status)

    def _wait(self, step: Step) -> Step:
        """Return the step. First wait for its answer, for as many seconds as the caller asks for.

        Raises ValidationError if that is not a number.
        """
        try:
            seconds = float(self.request.query_params.get("wait") or 0)
        except ValueError:
            raise ValidationError({"wait": "this is not a number of seconds. Send for example 10."}) from None
        end = time.monotonic() + min(MAX_WAIT_SECONDS, seconds)
        while not step.is_finished and time.monotonic() < end:
            time.sleep(LOOK)
            step.refresh_from_db()
        return step
