"""Django app of counts of sources."""

from django.apps import AppConfig


class SourcesConfig(AppConfig):
    name = "octweb.sources"
