"""Predictions over REST, tokens, the Open Inference Protocol."""

from django.apps import AppConfig


class ServingConfig(AppConfig):
    name = "octweb.serving"
