"""URLs of the decision API, below /api/v1/."""

from django.urls import path

from octweb.decide.api import ModelPublicPage, ModelReasonTexts

urlpatterns = [
    path("models/<uuid:pk>/public-page/", ModelPublicPage.as_view(), name="api-model-public-page"),
    path("models/<uuid:pk>/reasons/", ModelReasonTexts.as_view(), name="api-model-reasons"),
]
