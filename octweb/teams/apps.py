"""Django app of teams: their members and roles, and what belongs to them."""

from typing import Any

from django.apps import AppConfig


class TeamsConfig(AppConfig):
    name = "octweb.teams"

    def ready(self) -> None:
        from django.contrib.auth import get_user_model
        from django.db.models.signals import pre_delete

        pre_delete.connect(_on_delete, sender=get_user_model(), dispatch_uid="teams")


# this function imports when it is called; training processes never call it, and start faster without the import
def _on_delete(sender: Any, instance: Any, **_: Any) -> None:
    from octweb.teams.leaving import refuse_loss

    refuse_loss(instance)
