"""Trained models: versions, review, history."""

from django.apps import AppConfig


class RegistryConfig(AppConfig):
    name = "octweb.registry"
