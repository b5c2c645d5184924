"""Predictions over REST, tokens, the Open Inference Protocol."""

from django.apps import AppConfig


class ServingConfig(AppConfig):
    name = "octweb.serving"

    def ready(self) -> None:
        from octweb.serving import schema  # noqa: F401  (registers itself with the OpenAPI generator)
