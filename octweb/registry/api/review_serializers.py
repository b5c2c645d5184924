"""Bodies of the review, publication and sharing of models. The actions check values."""

from __future__ import annotations

from typing import Any, get_args

from rest_framework import serializers

from octweb.core.api import BodySerializer, Name, StrictTextField
from octweb.registry.lifecycle import actions
from octweb.registry.models import Recording, ReviewEvent, ShareLevel, TreeModel
from octweb.registry.review.checklist import (
    TITLES,
    ChecklistState,
    ReviewedModel,
    answers_of,
    build_checklist,
    purpose_of,
)


class ReviewEventSerializer(serializers.ModelSerializer):
    """A step in a model's history: a change of its state, or a note."""

    by = serializers.CharField(source="by.username", default=None, allow_null=True)
    before = serializers.CharField()

    class Meta:
        model = ReviewEvent
        fields = ["at", "by", "before", "after", "reason"]
        read_only_fields = fields


class ReviewStateSerializer(serializers.Serializer):
    """The state of a review, the steps that the caller may take, and the history."""

    state = serializers.CharField()
    possible = serializers.ListField(child=serializers.CharField())
    history = ReviewEventSerializer(many=True)


class ChecklistItemSerializer(serializers.Serializer):
    """An item of the reviewer's checklist."""

    item = serializers.ChoiceField(list(TITLES))
    title = serializers.CharField()
    state = serializers.ChoiceField(list(get_args(ChecklistState)))
    sentence = serializers.CharField()


class SentBackSerializer(serializers.Serializer):
    """A step that sent the model back, and the owner's answer."""

    by = serializers.CharField(allow_null=True)
    at = serializers.DateTimeField()
    reason = serializers.CharField()
    answer = serializers.CharField(allow_null=True, help_text="null: the owner has not asked again; may be empty")


class ReviewPageSerializer(ReviewStateSerializer):
    """The review of a model: state, purpose, answers and checklist."""

    purpose = serializers.CharField(help_text="why the owner asks for approval; later answers do not replace it")
    sent_back = SentBackSerializer(many=True)
    checklist = ChecklistItemSerializer(many=True)
    open = serializers.IntegerField(help_text="items of the checklist that are open; an approval then needs a reason")
    approvals = serializers.ListField(
        child=serializers.CharField(), help_text="who approved it so far, where two approvals are wanted"
    )


def review_record(model: TreeModel, user: Any) -> dict[str, Any]:
    """Return the review of a model, with the steps that `user` may take.

    Show it only to the model's owner and administrators.
    """
    reviewed = ReviewedModel(model)
    purpose = purpose_of(reviewed.events)
    items = build_checklist(reviewed)
    return {
        "state": model.state,
        "possible": actions.possible_steps(model, user),
        "history": ReviewEventSerializer(reviewed.events, many=True).data,
        "purpose": "" if purpose is None else purpose.reason,
        "sent_back": [
            {
                "by": back.by.get_username() if back.by else None,
                "at": back.at,
                "reason": back.reason,
                "answer": None if again is None else again.reason,
            }
            for back, again in answers_of(reviewed.events)
        ],
        "checklist": [item.to_json() for item in items],
        "open": sum(item.state == "open" for item in items),
        "approvals": [e.by.get_username() for e in actions.approvals(model) if e.by],
    }


class ReviewSerializer(BodySerializer):
    """A step of the review, with its reason."""

    action = serializers.ChoiceField(list(actions.TRANSITIONS))
    reason = StrictTextField(
        required=False,
        allow_blank=True,
        default="",
        max_length=5000,
        help_text="needed to reject, to ask back, and to approve against open items of the checklist",
    )
    publish = serializers.BooleanField(
        required=False,
        default=None,
        allow_null=True,
        help_text="with approve: serve it under its name from now on, or not; null: only if no higher version is served",
    )
    recording = serializers.ChoiceField(
        Recording.choices,
        required=False,
        help_text="with approve: what is kept of its answers; left out: as it is",
    )
    keep_days = serializers.IntegerField(
        required=False,
        default=None,
        allow_null=True,
        min_value=1,
        max_value=actions.MAX_KEEP_DAYS,
        help_text="with approve: days after which records are erased; null: as it is, at first the days of the site",
    )


class PublishSerializer(BodySerializer):
    """The name under which to serve a model."""

    name = Name(max_length=90, help_text="empty: the name stays")


class ShareSerializer(BodySerializer):
    """A user with access to a model, independent of its review."""

    username = StrictTextField(max_length=150)
    level = serializers.ChoiceField(ShareLevel.choices, required=False, default=ShareLevel.READ)
    records = serializers.BooleanField(
        required=False, default=False, help_text="the user may also read the records of its decisions"
    )
