"""URLs of the API of personal data, below /api/v1/."""

from django.urls import path

from octweb.privacy import api

urlpatterns = [
    path("privacy/", api.Privacy.as_view(), name="privacy"),
    path("datasets/<uuid:pk>/erase/", api.DatasetErasure.as_view(), name="dataset-erasure"),
]
