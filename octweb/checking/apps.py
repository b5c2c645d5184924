"""Proofs that are kept beside models, and checks of models as jobs."""

from django.apps import AppConfig


class CheckingConfig(AppConfig):
    name = "octweb.checking"
