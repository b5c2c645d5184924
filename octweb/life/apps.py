"""Models in use: what their answers were, counted by day, and whether that has changed since the training."""

from django.apps import AppConfig


class LifeConfig(AppConfig):
    name = "octweb.life"
