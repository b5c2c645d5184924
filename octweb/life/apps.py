"""Django app of served models: daily counts of answers, and alarms about changes since training."""

from typing import Any

from django.apps import AppConfig


class LifeConfig(AppConfig):
    name = "octweb.life"

    def ready(self) -> None:
        from octweb.jobs.signals import beside
        from octweb.life.mode import MODE
        from octweb.registry.page.mode import register_mode

        register_mode(MODE, after="performance")
        beside.connect(_on_beside, dispatch_uid="life")


# this function imports when it is called; training processes never call it, and start faster without the import
def _on_beside(sender: Any, **_: Any) -> None:
    from octweb.life.looking import look_at_due

    look_at_due()
