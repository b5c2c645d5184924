"""Shared pieces of the application: ownership, problem details, pages, permissions."""

from django.apps import AppConfig


class CoreConfig(AppConfig):
    name = "octweb.core"
