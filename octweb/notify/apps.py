"""Messages about long runs that have ended: by e-mail, and to an address that the user names."""

from django.apps import AppConfig


class NotifyConfig(AppConfig):
    name = "octweb.notify"

    def ready(self) -> None:
        from octweb.jobs.signals import beside, ended
        from octweb.notify.delivery import on_beside
        from octweb.notify.news import on_end

        ended.connect(on_end, dispatch_uid="notify")
        beside.connect(on_beside, dispatch_uid="notify")
