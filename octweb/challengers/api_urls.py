"""API of challengers, below /api/v1/."""

from django.urls import path

from octweb.challengers import api

urlpatterns = [
    path("models/<uuid:pk>/challenger/", api.ModelChallenger.as_view(), name="api-model-challenger"),
    path(
        "models/<uuid:pk>/challenger/promote/",
        api.ModelChallengerPromote.as_view(),
        name="api-model-challenger-promote",
    ),
]
