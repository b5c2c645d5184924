"""Data sets: upload, columns, profile, storage."""

from django.apps import AppConfig


class DatasetsConfig(AppConfig):
    name = "octweb.datasets"
