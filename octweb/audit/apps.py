"""The chain of recorded decisions."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "octweb.audit"
