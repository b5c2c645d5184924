"""URLs of the dossier API, below /api/v1/."""

from django.urls import path

from octweb.dossier import api

urlpatterns = [path("models/<uuid:pk>/dossier/", api.DossierView.as_view(), name="api-model-dossier")]
