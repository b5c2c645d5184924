"""Remove uploads that were not confirmed within a day: `manage.py prune_uploads`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from octweb.datasets import actions


class Command(BaseCommand):
    help = "Remove uploads that nobody confirmed within a day."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{actions.prune()} uploads removed.")
