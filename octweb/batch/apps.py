"""Django app of batch predictions."""

from django.apps import AppConfig


class BatchConfig(AppConfig):
    name = "octweb.batch"
