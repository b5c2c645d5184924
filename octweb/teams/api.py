"""API of teams, below /api/v1/."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import prefetch_related_objects
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from octweb.core.api import PROBLEMS, BodySerializer, StrictTextField
from octweb.core.idempotency import idempotent
from octweb.core.models import Team, TeamRole
from octweb.core.ownership import team_roles
from octweb.datasets.models import Dataset
from octweb.registry.models import TreeModel
from octweb.teams import actions

CHANGES = PROBLEMS(400, 401, 403, 404, 409, 413, 415, 422, 429)


class MemberSerializer(BodySerializer):
    """A user and the role in the team."""

    username = StrictTextField(max_length=150)
    role = serializers.ChoiceField(TeamRole.choices)


class TeamSerializer(serializers.Serializer):
    """A team with its members."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    created = serializers.DateTimeField()
    role = serializers.CharField(allow_null=True, help_text="of the caller; null for an administrator who is no member")
    members = MemberSerializer(many=True)


class TeamNameSerializer(BodySerializer):
    """The name of a team."""

    name = StrictTextField(max_length=100)


class BelongsToSerializer(BodySerializer):
    """The team to which a data set or model belongs; null: to the user who made it."""

    team = serializers.UUIDField(allow_null=True)


def record_of(team: Team, user: Any) -> dict[str, Any]:
    """Return a team as the API shows it."""
    prefetch_related_objects([team], "members__user")
    members = [{"username": m.user.get_username(), "role": m.role} for m in team.members.all()]
    role = team_roles(user).get(team.pk)
    return {"id": team.pk, "name": team.name, "created": team.created, "role": role, "members": members}


class TeamView(GenericAPIView):
    """Base class of views about teams."""

    serializer_class = TeamSerializer
    queryset = Team.objects.none()
    pagination_class = None

    def find(self) -> Team:
        return actions.find_team(self.request.user, self.kwargs["pk"])

    def get_object(self) -> Team:
        """Return the team. OPTIONS calls this to find out whether the caller may change it."""
        return self.find()

    def answer(self, team: Team, status: int = 200) -> Response:
        """Return a team as a response."""
        return Response(TeamSerializer(record_of(team, self.request.user)).data, status=status)


class TeamList(TeamView):
    """Teams of the caller, or all for administrators."""

    @extend_schema(operation_id="teams_list", responses={200: TeamSerializer(many=True)} | PROBLEMS(401, 403, 429))
    def get(self, request: Request) -> Response:
        teams = actions.visible_teams(request.user).prefetch_related("members__user")
        return Response(TeamSerializer([record_of(team, request.user) for team in teams], many=True).data)

    @extend_schema(operation_id="teams_create", request=TeamNameSerializer, responses={201: TeamSerializer} | CHANGES)
    @idempotent
    def post(self, request: Request) -> Response:
        form = TeamNameSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        return self.answer(actions.create(by=request.user, name=form.validated_data["name"]), 201)


class TeamDetail(TeamView):
    """A team, its name and its members."""

    @extend_schema(operation_id="teams_retrieve", responses={200: TeamSerializer} | PROBLEMS(401, 403, 404, 429))
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        return self.answer(self.find())

    @extend_schema(operation_id="teams_rename", request=TeamNameSerializer, responses={200: TeamSerializer} | CHANGES)
    def patch(self, request: Request, pk: uuid.UUID) -> Response:
        team = self.find()
        form = TeamNameSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        return self.answer(actions.rename(team, by=request.user, name=form.validated_data["name"]))

    @extend_schema(operation_id="teams_delete", responses={204: None} | PROBLEMS(401, 403, 404, 409, 429))
    def delete(self, request: Request, pk: uuid.UUID) -> Response:
        actions.delete(self.find(), by=request.user)
        return Response(status=204)


class TeamMembers(TeamView):
    """Members of a team and their roles."""

    @extend_schema(operation_id="teams_member_set", request=MemberSerializer, responses={200: TeamSerializer} | CHANGES)
    def post(self, request: Request, pk: uuid.UUID) -> Response:
        team = self.find()
        form = MemberSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        actions.set_member(team, by=request.user, **form.validated_data)
        return self.answer(team)

    @extend_schema(
        operation_id="teams_member_remove",
        parameters=[OpenApiParameter("username", str, required=True)],
        responses={204: None} | PROBLEMS(400, 401, 403, 404, 409, 429),
    )
    def delete(self, request: Request, pk: uuid.UUID) -> Response:
        team = self.find()
        name = request.query_params.get("username", "").replace("\x00", "")
        if not name:
            raise ValidationError({"username": "This is empty. Name the member who leaves the team."})
        actions.remove_member(team, by=request.user, username=name)
        return Response(status=204)


class _BelongsTo(GenericAPIView):
    """Base class of views that show and change the team of an object."""

    serializer_class = BelongsToSerializer
    pagination_class = None
    kind: Any = Dataset

    def get_object(self) -> Any:
        """Return the object. OPTIONS calls this to find out whether the caller may change it."""
        return self.kind._default_manager.get_for(self.request, self.kwargs["pk"])

    def change(self) -> Response:
        """Move the object to the team in the body."""
        thing = self.get_object()
        form = BelongsToSerializer(data=self.request.data)
        form.is_valid(raise_exception=True)
        key = form.validated_data["team"]
        try:
            team = None if key is None else actions.find_team(self.request.user, key)
        except Http404 as error:
            raise ValidationError({"team": str(error)}) from error
        actions.give(thing, by=self.request.user, team=team)
        return Response({"team": thing.team_id})


class DatasetTeam(_BelongsTo):
    """The team of a data set."""

    @extend_schema(operation_id="datasets_team", responses={200: BelongsToSerializer} | PROBLEMS(401, 403, 404, 429))
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        return Response({"team": self.get_object().team_id})

    @extend_schema(operation_id="datasets_team_set", responses={200: BelongsToSerializer} | CHANGES)
    def put(self, request: Request, pk: uuid.UUID) -> Response:
        return self.change()


class ModelTeam(_BelongsTo):
    """The team of a model."""

    kind = TreeModel

    @extend_schema(operation_id="models_team", responses={200: BelongsToSerializer} | PROBLEMS(401, 403, 404, 429))
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        return Response({"team": self.get_object().team_id})

    @extend_schema(operation_id="models_team_set", responses={200: BelongsToSerializer} | CHANGES)
    def put(self, request: Request, pk: uuid.UUID) -> Response:
        return self.change()
