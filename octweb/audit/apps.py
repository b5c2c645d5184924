"""Django app of the audit chain."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "octweb.audit"
