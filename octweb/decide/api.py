"""API of a model's public page and of its texts for reasons, below /api/v1/."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import transaction
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from octweb.core.api import PROBLEMS, BodySerializer
from octweb.decide import actions
from octweb.decide.wording import MAX_TEXT_CHARACTERS, questions_of, write_words
from octweb.registry.models import State, TreeModel


class PublicPageSerializer(BodySerializer):
    """The public page of a model."""

    open = serializers.BooleanField(
        read_only=True, help_text="whether people can reach it now: it was opened, and the model is approved"
    )
    address = serializers.CharField(
        read_only=True, allow_null=True, help_text="for everyone; null if it was never opened"
    )
    purpose = serializers.CharField(
        max_length=actions.MAX_PURPOSE, help_text="what the answer is used for, who decides, and how to object"
    )
    contact = serializers.CharField(max_length=actions.MAX_CONTACT)
    show_training = serializers.BooleanField(
        default=False, help_text="whether the page says how many training rows got which answer"
    )


class ModelPublicPage(GenericAPIView):
    """The public page of an approved model, for everyone with its address. The owner of the model and administrators manage it."""

    serializer_class = PublicPageSerializer
    pagination_class = None

    def get_object(self) -> TreeModel:
        """Return the model. For OPTIONS, REST framework calls this to find out whether the caller may PUT."""
        return self._model(self.kwargs["pk"])

    def _model(self, pk: uuid.UUID) -> TreeModel:
        return TreeModel.objects.select_related("family").get_for(self.request, pk)

    def _record(self, model: TreeModel) -> dict[str, Any]:
        guidance = actions.guidance_of(model)
        address = self.request.build_absolute_uri(reverse("public-page", args=[guidance.key]))
        return {
            "open": guidance.public and model.state == State.APPROVED,
            "address": address if guidance.public else None,
            "purpose": guidance.purpose,
            "contact": guidance.contact,
            "show_training": guidance.show_training,
        }

    @extend_schema(
        operation_id="models_public_page_retrieve",
        responses={200: PublicPageSerializer} | PROBLEMS(401, 403, 404, 429),
    )
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        return Response(self._record(self._model(pk)))

    @extend_schema(
        operation_id="models_public_page_open",
        request=PublicPageSerializer,
        responses={200: PublicPageSerializer} | PROBLEMS(400, 401, 403, 404, 409, 413, 415, 429),
    )
    def put(self, request: Request, pk: uuid.UUID) -> Response:
        """Open the page, or change its texts. 409 if the model is not approved."""
        model = self._model(pk)
        form = PublicPageSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        actions.publish(model, by=request.user, **form.validated_data)
        return Response(self._record(model))

    @extend_schema(
        operation_id="models_public_page_close", responses={204: None} | PROBLEMS(401, 403, 404, 429), request=None
    )
    def delete(self, request: Request, pk: uuid.UUID) -> Response:
        """Close the page. Its address then returns 404. Purpose and contact are kept."""
        actions.unpublish(self._model(pk), by=request.user)
        return Response(status=204)


def _words(answer: str) -> serializers.CharField:
    return serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=MAX_TEXT_CHARACTERS,
        help_text=f"the reason if the answer is {answer}",
    )


class QuestionSerializer(serializers.Serializer):
    """A question of the tree, and the owner's texts for its answers. A text is "" if there is none."""

    nodes = serializers.ListField(child=serializers.IntegerField(), help_text="the nodes that ask it")
    question = serializers.CharField()
    yes = serializers.CharField()
    no = serializers.CharField()


class ReasonTextsSerializer(serializers.Serializer):
    """Texts for reasons in the order of the tree, and the contact that letters name."""

    questions = QuestionSerializer(many=True)
    contact = serializers.CharField()


class ReasonTextSerializer(serializers.Serializer):
    """Texts for the answers to one question. A member that is left out stays as it is."""

    node = serializers.IntegerField(help_text="a node that asks the question")
    yes = _words("yes")
    no = _words("no")


class NewReasonTextsSerializer(BodySerializer):
    """New texts for reasons. Questions that are not named, and a contact that is left out, stay as they are."""

    texts = ReasonTextSerializer(many=True, required=False)
    contact = serializers.CharField(required=False, allow_blank=True, max_length=actions.MAX_CONTACT)


class ModelReasonTexts(GenericAPIView):
    """The owner's texts for the answers of the tree. Letters, pages and the API give reasons in these words."""

    serializer_class = ReasonTextsSerializer
    pagination_class = None

    def get_object(self) -> TreeModel:
        model: TreeModel = TreeModel.objects.select_related("family", "owner").get_for(self.request, self.kwargs["pk"])
        return model

    def _record(self, model: TreeModel) -> dict[str, Any]:
        return {"questions": questions_of(model), "contact": actions.guidance_of(model).contact}

    @extend_schema(
        operation_id="models_reasons_retrieve", responses={200: ReasonTextsSerializer} | PROBLEMS(401, 403, 404, 429)
    )
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        return Response(self._record(self.get_object()))

    @extend_schema(
        operation_id="models_reasons_update",
        request=NewReasonTextsSerializer,
        responses={200: ReasonTextsSerializer} | PROBLEMS(400, 401, 403, 404, 409, 413, 415, 429),
    )
    def put(self, request: Request, pk: uuid.UUID) -> Response:
        """Store texts for reasons. After approval was requested, only an administrator may do so: 409 for the owner."""
        model = self.get_object()
        form = NewReasonTextsSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        with transaction.atomic():
            write_words(model, by=request.user, texts=form.validated_data.get("texts", ()))
            if "contact" in form.validated_data:
                actions.set_contact(model, by=request.user, contact=form.validated_data["contact"])
        return Response(self._record(model))
