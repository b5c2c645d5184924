"""Send messages about ended runs, experiments, alarms and reviews, by e-mail or webhook."""

from typing import Any

from django.apps import AppConfig


class NotifyConfig(AppConfig):
    name = "octweb.notify"

    def ready(self) -> None:
        from octweb.jobs.signals import beside, ended
        from octweb.life.signals import alarmed
        from octweb.oversight.signals import review_due

        ended.connect(_on_end, dispatch_uid="notify")
        beside.connect(_on_beside, dispatch_uid="notify")
        alarmed.connect(_on_alarm, dispatch_uid="notify")
        review_due.connect(_on_review_due, dispatch_uid="notify")


# these functions import when they are called: the modules load REST framework, and training processes send no signal
def _on_end(sender: Any, **arguments: Any) -> None:
    from octweb.notify.receivers import on_end

    on_end(sender, **arguments)


def _on_beside(sender: Any, **arguments: Any) -> None:
    from octweb.notify.anchoring import anchor_due
    from octweb.notify.delivery import on_beside

    on_beside(sender, **arguments)
    anchor_due()


def _on_alarm(sender: Any, **arguments: Any) -> None:
    from octweb.notify.receivers import on_alarm

    on_alarm(sender, **arguments)


def _on_review_due(sender: Any, **arguments: Any) -> None:
    from octweb.notify.receivers import on_review_due

    on_review_due(sender, **arguments)
