"""`manage.py methods`: what can be trained, and with which parameters."""

import json

from django.core.management.base import BaseCommand

from trainer.methods import METHODS


class Command(BaseCommand):
    help = "List the methods with their parameters."
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser):
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args, **options):
        if options["json"]:
            self.stdout.write(json.dumps({"methods": [method.to_json() for method in METHODS]}))
            return
        for method in METHODS:
            self.stdout.write(f"{method.id}: {method.title} ({method.guarantee}; {method.paper})")
            self.stdout.write(f"  {method.summary}")
            for p in method.parameters:
                default = "none" if p.default is None else p.default
                self.stdout.write(f"  {p.name} = {default}: {p.help} ({p.allowed()})")
