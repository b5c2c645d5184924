"""Django app of personal data: what is stored about persons, until when, and how it is erased."""

from typing import Any

from django.apps import AppConfig


class PrivacyConfig(AppConfig):
    name = "octweb.privacy"

    def ready(self) -> None:
        from octweb.jobs.signals import beside

        beside.connect(_on_beside, dispatch_uid="privacy")


# this function imports when it is called; training processes never call it, and start faster without the import
def _on_beside(sender: Any, **_: Any) -> None:
    from octweb.privacy.expiry import remove_due

    remove_due()
