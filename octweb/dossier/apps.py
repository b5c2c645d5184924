"""Dossiers of models."""

from django.apps import AppConfig


class DossierConfig(AppConfig):
    name = "octweb.dossier"
