"""URLs of the challenger API, below /api/v1/."""

from django.urls import path

from octweb.challengers import api, price_api

urlpatterns = [
    path("models/<uuid:pk>/challenger/", api.ModelChallenger.as_view(), name="api-model-challenger"),
    path(
        "models/<uuid:pk>/challenger/promote/",
        api.ModelChallengerPromote.as_view(),
        name="api-model-challenger-promote",
    ),
    path(
        "models/<uuid:pk>/figures/life/differences/",
        api.DifferencesFigure.as_view(),
        name="api-model-differences-figure",
    ),
    path("models/<uuid:pk>/life/price/", price_api.ModelPrice.as_view(), name="api-model-price"),
]
