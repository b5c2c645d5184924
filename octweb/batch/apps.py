"""Files of rows that are predicted in the background."""

from django.apps import AppConfig


class BatchConfig(AppConfig):
    name = "octweb.batch"
