"""Django app of training runs: request, training, live progress."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "octweb.runs"
