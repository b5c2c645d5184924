"""Django app of predictions over REST, tokens and the Open Inference Protocol."""

from django.apps import AppConfig


class ServingConfig(AppConfig):
    name = "octweb.serving"
