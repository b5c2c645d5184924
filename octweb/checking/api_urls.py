"""URLs of the comparison API, below /api/v1/."""

from django.urls import path

from octweb.checking import api

urlpatterns = [
    path("models/<uuid:pk>/comparison/", api.ComparisonView.as_view(), name="api-model-comparison"),
    path("models/<uuid:pk>/comparison/cancel/", api.ComparisonCancel.as_view(), name="api-model-comparison-cancel"),
]
