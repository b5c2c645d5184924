"""Create an API token and print it: `manage.py token USERNAME`."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import CommandParser
from django.core.management.base import BaseCommand, CommandError
from rest_framework.exceptions import APIException

from octweb.serving.actions import create_token
from octweb.serving.models import Scope


class Command(BaseCommand):
    help = "Make an API token and print it, once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", metavar="USERNAME")
        parser.add_argument("--name", default="command line", help="a name to recognise it by")
        parser.add_argument("--scope", choices=Scope.values, default=Scope.FULL, help="what it may be used for")
        parser.add_argument("--days", type=int, default=None, help="days until it expires (default: never)")

    def handle(self, *args: Any, **options: Any) -> None:
        user = get_user_model().objects.filter(username=options["username"], is_active=True).first()
        if user is None:
            raise CommandError(
                f"There is no active user called '{options['username']}'. Correct the name, or activate the account."
            )
        try:
            _, secret = create_token(owner=user, name=options["name"], scope=options["scope"], days=options["days"])
        except APIException as error:
            raise CommandError(str(error)) from error
        self.stdout.write(secret)
