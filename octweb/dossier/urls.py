"""URLs of dossiers, below those of models."""

from django.urls import path

from octweb.dossier import views

app_name = "dossier"
urlpatterns = [
    path("<uuid:pk>/dossier/", views.page, name="page"),
    path("<uuid:pk>/dossier/panel/", views.panel, name="panel"),
    path("<uuid:pk>/dossier/start/", views.start, name="start"),
    path("<uuid:pk>/dossier/<slug:form>/", views.file, name="file"),
]
