"""Django app of the public demo. Its system checks refuse unsafe settings."""

from django.apps import AppConfig
from django.core import checks


class DemoConfig(AppConfig):
    name = "octweb.demo"

    def ready(self) -> None:
        from octweb.demo.checks import safe

        checks.register(safe)
