"""API of tokens, below /api/v1/."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from octweb.core.api import PROBLEMS, BodySerializer, Name
from octweb.core.idempotency import idempotent_secret
from octweb.serving import actions
from octweb.serving.models import ApiToken, Scope


class TokenSerializer(serializers.ModelSerializer):
    """A token without its secret."""

    key = serializers.CharField(source="token_key", help_text="the first characters of the token")

    class Meta:
        model = ApiToken
        fields = ["key", "name", "scope", "created", "expiry"]
        read_only_fields = fields


class NewTokenSerializer(BodySerializer):
    """Settings of a new token."""

    name = Name(max_length=100)
    scope = serializers.ChoiceField(Scope.choices, required=False, default=Scope.FULL)
    days = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=actions.MAX_DAYS, help_text="until expiry"
    )


class CreatedTokenSerializer(TokenSerializer):
    """A new token. Only this response contains its secret, `token`."""

    token = serializers.CharField()

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "token"]
        read_only_fields = fields


class TokenList(ListAPIView):
    """Your tokens."""

    cursor_key = "token_key"  # the primary key is a digest that no URL may show
    serializer_class = TokenSerializer
    queryset = ApiToken.objects.none()

    def get_queryset(self) -> QuerySet:
        return ApiToken.objects.filter(user=self.request.user)

    @extend_schema(responses={200: TokenSerializer(many=True)} | PROBLEMS(400, 401, 403, 404, 429))
    def get(self, request: Request) -> Response:
        return self.list(request)

    @extend_schema(
        request=NewTokenSerializer,
        responses={201: CreatedTokenSerializer} | PROBLEMS(400, 401, 403, 409, 413, 415, 422, 429),
    )
    @idempotent_secret
    def post(self, request: Request) -> Response:
        form = NewTokenSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        token, secret = actions.create_token(owner=request.user, made_by=request.auth, **form.validated_data)
        token.token = secret
        return Response(CreatedTokenSerializer(token).data, status=201)


class TokenDetail(APIView):
    """One of your tokens."""

    @extend_schema(operation_id="tokens_revoke", responses={204: None} | PROBLEMS(401, 403, 404, 429))
    def delete(self, request: Request, key: str) -> Response:
        token = ApiToken.objects.filter(user=request.user, token_key=key).first()
        if token is None:
            raise Http404(f"No token of yours begins with '{key[:20]}'. Take a key from the list of your tokens.")
        actions.revoke_token(token)
        return Response(status=204)


class SignedOutSerializer(serializers.Serializer):
    """Numbers of revoked tokens and ended sessions."""

    tokens = serializers.IntegerField()
    sessions = serializers.IntegerField()


class SignOutEverywhere(APIView):
    """Revoke all your tokens, including the one of this call, and end all your sessions except that of this call."""

    @extend_schema(
        operation_id="sign_out_everywhere",
        request=None,
        responses={200: SignedOutSerializer} | PROBLEMS(401, 403, 429),
    )
    def post(self, request: Request) -> Response:
        session_key = request.session.session_key if request.auth is None else None
        tokens = actions.revoke_all_tokens(request.user)
        sessions = actions.end_other_sessions(request.user, kept=session_key)
        return Response({"tokens": tokens, "sessions": sessions})
