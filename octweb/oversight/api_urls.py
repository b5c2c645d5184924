"""URLs of the API of oversight, below /api/v1/."""

from django.urls import path

from octweb.oversight import api

urlpatterns = [
    path("inventory/", api.Inventory.as_view(), name="inventory"),
    path("models/<uuid:pk>/oversight/", api.ModelOversight.as_view(), name="model-oversight"),
    path("models/<uuid:pk>/oversight/review/", api.RepeatedReview.as_view(), name="model-oversight-review"),
]
