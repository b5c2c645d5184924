"""Batch predictions of files."""

from django.apps import AppConfig


class BatchConfig(AppConfig):
    name = "octweb.batch"
