"""Bodies of models and of their import."""

from __future__ import annotations

from typing import Any, get_args

from drf_spectacular.utils import extend_schema_field, inline_serializer
from rest_framework import serializers

from octweb.core.api import BodySerializer, Name, StrictTextField
from octweb.core.model_schema import reference
from octweb.core.ownership import may_see
from octweb.registry.api.review_serializers import ReviewEventSerializer, ReviewStateSerializer
from octweb.registry.document import claims
from octweb.registry.document.model_files import model_file
from octweb.registry.document.selection import selection_of
from octweb.registry.hooks import agreement
from octweb.registry.lifecycle import actions
from octweb.registry.lifecycle.access import may_see_rows
from octweb.registry.lifecycle.importing import FORMS
from octweb.registry.models import TreeModel
from trainer.evaluate.verdict import Kind, base_rate, read_verdict


class ClaimSerializer(serializers.Serializer):
    """The claim about a tree, in words."""

    kind = serializers.ChoiceField(["proved", "wishes", "gap", "heuristic"])
    words = serializers.CharField()
    tip = serializers.CharField()


BASE_RATE = inline_serializer(
    "BaseRate",
    {
        "class": serializers.CharField(),
        "share": serializers.FloatField(),
        "rows": serializers.ChoiceField(["unseen", "training"], help_text="the rows on which the share is counted"),
    },
    allow_null=True,
)
VERDICT = inline_serializer(
    "Verdict",
    {
        "kind": serializers.ChoiceField(list(get_args(Kind))),
        "sentence": serializers.CharField(),
        "next": serializers.CharField(),
        "settings": serializers.DictField(
            help_text="parameters of the method to train with next; empty: none in particular"
        ),
    },
)


class WishSerializer(serializers.Serializer):
    """A wish that the tree keeps, and its price."""

    wish = serializers.CharField(help_text="as it was typed")
    words = serializers.CharField()
    price_rows = serializers.FloatField(
        allow_null=True,
        help_text="objective gained by removing this wish alone, in rows; null: not known, or rows have weights or answers costs",
    )
    price_words = serializers.CharField(help_text="the same with its unit, which is that of the costs if there are any")
    reason = serializers.CharField(allow_blank=True)


class ModelSerializer(serializers.ModelSerializer):
    """A model, as lists contain it."""

    name = serializers.CharField(source="family.name", help_text="the name under which versions are served")
    served_since = serializers.DateTimeField(
        allow_null=True,
        help_text="since when programs reach it by name and number; null: it is not served",
    )
    owner = serializers.CharField(source="owner.username")
    dataset = serializers.SerializerMethodField()
    team = serializers.SerializerMethodField()

    class Meta:
        model = TreeModel
        fields = [
            "id",
            "name",
            "version",
            "title",
            "owner",
            "created",
            "dataset",
            "team",
            "method",
            "state",
            "served_since",
            "status",
            "guarantee",
            "objective",
            "bound",
            "gap",
            "train_accuracy",
            "unseen_accuracy",
            "leaves",
            "depth",
            "sha256",
        ]
        read_only_fields = fields

    def get_dataset(self, model: TreeModel) -> str | None:
        """Return the id of the data set. None unless the caller owns the model, is in its team, or is an administrator."""
        user = self.context["request"].user
        if model.dataset_id is None or not may_see(user, model):
            return None
        return str(model.dataset_id)

    @extend_schema_field(serializers.UUIDField(allow_null=True))
    def get_team(self, model: TreeModel) -> str | None:
        """Return the id of the team. None unless the caller may see everything of the model."""
        is_shown = model.team_id is not None and may_see(self.context["request"].user, model)
        return str(model.team_id) if is_shown else None


class SelectionSerializer(serializers.Serializer):
    """The selection of a model among candidates, with an estimate of its accuracy."""

    candidates = serializers.IntegerField()
    words = serializers.CharField()
    fair = serializers.BooleanField(help_text="its own accuracy on unseen rows took no part in the choice")
    accuracy = serializers.FloatField(allow_null=True)
    interval = serializers.ListField(child=serializers.FloatField(), allow_null=True)
    correct = serializers.IntegerField(allow_null=True)
    n = serializers.IntegerField(allow_null=True)


class SizeSerializer(serializers.Serializer):
    """A number of leaves that the training compared."""

    leaves = serializers.IntegerField()
    leaf_penalty = serializers.FloatField(help_text="the penalty that gives a tree of so many leaves")
    unseen = serializers.FloatField(help_text="accuracy, or cost per row, on training rows that were set aside")
    error = serializers.FloatField(help_text="its standard error over the folds")
    chosen = serializers.BooleanField()


class SizesSerializer(serializers.Serializer):
    """The numbers of leaves that the training compared, and why it chose one or none."""

    reason = serializers.CharField(help_text="why no size was chosen; empty if one was")
    measure = serializers.ChoiceField(["accuracy", "cost_per_row"], required=False)
    folds = serializers.IntegerField(required=False)
    repeats = serializers.IntegerField(required=False)
    tried = SizeSerializer(many=True)


class GoodTreesRecordSerializer(serializers.Serializer):
    """Rows whose answer depends on the choice among all good trees."""

    state = serializers.CharField(help_text="counted")
    trees = serializers.IntegerField(help_text="how many good trees there are")
    slack_rows = serializers.IntegerField(
        allow_null=True, help_text="rows that a good tree costs at most more than the best; null with costs of answers"
    )
    slack = serializers.CharField(
        allow_null=True, help_text="with costs of answers: the largest excess, as a share of the least cost"
    )
    depends = serializers.IntegerField(help_text="training rows that not all good trees answer alike")
    of = serializers.IntegerField()
    sentence = serializers.CharField()
    bench = serializers.UUIDField(help_text="the workbench that counted them")


class ModelDetailSerializer(ModelSerializer):
    """A model with its tree, its claims, and its history."""

    base_rate = serializers.SerializerMethodField(
        help_text="how often one answer for all rows is right: always the most frequent class of the training rows"
    )
    verdict = serializers.SerializerMethodField(
        help_text="whether it is better than one answer for all, and what to do"
    )
    served = serializers.SerializerMethodField(help_text="whether the name without a number answers with it")
    claims = serializers.SerializerMethodField()
    warnings = serializers.SerializerMethodField(
        help_text="what a reviewer must know, such as a tree that asks a row number"
    )
    proved_optimal = serializers.SerializerMethodField(
        help_text="whether no tree of the search space is better; false for a tree with wishes"
    )
    wishes = serializers.SerializerMethodField()
    price_rows = serializers.SerializerMethodField(
        help_text="objective that all wishes together cost, in rows; null: no wishes, not known, or rows have weights or answers costs"
    )
    target = serializers.SerializerMethodField()
    classes = serializers.SerializerMethodField()
    columns = serializers.SerializerMethodField()
    tree = serializers.SerializerMethodField()
    metrics = serializers.SerializerMethodField()
    certificate = serializers.SerializerMethodField()
    parameters = serializers.SerializerMethodField()
    fingerprint = serializers.SerializerMethodField()
    sizes = serializers.SerializerMethodField(
        help_text="the numbers of leaves among which the training chose; null where the settings stated the leaf penalty"
    )
    review = serializers.SerializerMethodField()
    good_trees = serializers.SerializerMethodField(
        help_text="whether other good trees give the same answers; null for those who may not see the rows, and where they are not counted"
    )
    selection = serializers.SerializerMethodField(
        help_text="what the choice is worth if it was chosen among others in an experiment"
    )

    class Meta(ModelSerializer.Meta):
        fields = [
            *ModelSerializer.Meta.fields,
            "base_rate",
            "verdict",
            "served",
            "recording",
            "claims",
            "warnings",
            "proved_optimal",
            "wishes",
            "price_rows",
            "target",
            "classes",
            "columns",
            "tree",
            "metrics",
            "certificate",
            "parameters",
            "fingerprint",
            "sizes",
            "review",
            "good_trees",
            "selection",
        ]
        read_only_fields = fields

    @extend_schema_field(BASE_RATE)
    def get_base_rate(self, model: TreeModel) -> dict[str, Any] | None:
        rate = base_rate(model_file(model))
        return None if rate is None else rate.to_json()

    @extend_schema_field(VERDICT)
    def get_verdict(self, model: TreeModel) -> dict[str, Any]:
        return read_verdict(model_file(model)).to_json()

    @extend_schema_field(ClaimSerializer(many=True))
    def get_claims(self, model: TreeModel) -> list[dict[str, str]]:
        return [{"kind": c.kind, "words": c.words, "tip": c.tip} for c in claims.claim_badges(model)]

    def get_warnings(self, model: TreeModel) -> list[str]:
        return claims.warnings_of(model)

    def get_proved_optimal(self, model: TreeModel) -> bool:
        return claims.claim_of(model).proved_optimal

    @extend_schema_field(WishSerializer(many=True))
    def get_wishes(self, model: TreeModel) -> list[dict[str, Any]]:
        return list(claims.claim_of(model).wishes)

    def get_price_rows(self, model: TreeModel) -> float | None:
        return claims.claim_of(model).price_rows

    def get_served(self, model: TreeModel) -> bool:
        return model.served_since is not None and actions.served_version(model.family) == model

    @extend_schema_field(SizesSerializer(allow_null=True))
    def get_sizes(self, model: TreeModel) -> dict[str, Any] | None:
        sizes = model_file(model).sizes
        return None if sizes is None else dict(sizes)

    def get_target(self, model: TreeModel) -> str:
        return model_file(model).target

    def get_classes(self, model: TreeModel) -> list[str]:
        return list(model_file(model).tree.classes)

    @extend_schema_field({"type": "array", "items": reference("UsedColumn")})
    def get_columns(self, model: TreeModel) -> list[dict[str, Any]]:
        tree = model_file(model).tree
        used_columns = set(tree.used_columns)
        return [column.to_json() | {"used": j in used_columns} for j, column in enumerate(tree.schema)]

    @extend_schema_field({"type": "array", "items": reference("TreeNode")})
    def get_tree(self, model: TreeModel) -> list[dict[str, Any]]:
        return model_file(model).tree.to_json()

    @extend_schema_field(reference("Metrics"))
    def get_metrics(self, model: TreeModel) -> dict[str, Any]:
        return dict(model_file(model).metrics)

    @extend_schema_field(reference("Certificate"))
    def get_certificate(self, model: TreeModel) -> dict[str, Any]:
        return dict(model_file(model).certificate)

    def get_parameters(self, model: TreeModel) -> dict[str, Any]:
        return dict(model_file(model).parameters)

    def get_fingerprint(self, model: TreeModel) -> str:
        return model_file(model).fingerprint

    @extend_schema_field(ReviewStateSerializer)
    def get_review(self, model: TreeModel) -> dict[str, Any]:
        user = self.context["request"].user
        inside = may_see(user, model)
        events = model.events.select_related("by") if inside else []
        return {
            "state": model.state,
            "possible": actions.possible_steps(model, user),
            "history": ReviewEventSerializer(events, many=True).data,
        }

    @extend_schema_field(GoodTreesRecordSerializer(allow_null=True))
    def get_good_trees(self, model: TreeModel) -> dict[str, Any] | None:
        record = agreement(model) if may_see_rows(self.context["request"].user, model) else None
        return record if record is not None and record["state"] == "counted" else None

    @extend_schema_field(SelectionSerializer(allow_null=True))
    def get_selection(self, model: TreeModel) -> dict[str, Any] | None:
        selection = selection_of(model)
        return None if selection is None else dict(SelectionSerializer(selection).data)


class BringSerializer(BodySerializer):
    """The file of a tree to import, and the data set on whose rows the tree is counted."""

    file = serializers.FileField(
        allow_empty_file=True, help_text="LightGBM (text or JSON), PMML 4, or a model file of octweb"
    )
    dataset = serializers.UUIDField(help_text="one of your data sets; the columns of the tree are found in it by name")
    title = Name(max_length=200)
    classes = StrictTextField(
        required=False,
        default="",
        allow_blank=True,
        max_length=2000,
        help_text="names of the classes in the order of the source, with commas: no,yes; LightGBM does not keep them",
    )
    form = serializers.ChoiceField([*FORMS], required=False, default="", help_text="empty: detected")
