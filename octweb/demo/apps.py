"""The application of the public demo; its system checks refuse a server that would not be safe in public."""

from django.apps import AppConfig
from django.core import checks


class DemoConfig(AppConfig):
    name = "octweb.demo"

    def ready(self) -> None:
        from octweb.demo.checks import safe

        checks.register(safe)
