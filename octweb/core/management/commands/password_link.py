"""Print a link to set a new password: `manage.py password_link USERNAME`."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.tokens import default_token_generator
from django.core.management import CommandParser
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode


class Command(BaseCommand):
    help = "Print the path of a page on which the user sets a new password. It works once, and for some days."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", metavar="USERNAME")

    def handle(self, *args: Any, **options: Any) -> None:
        user = get_user_model().objects.filter(username=options["username"], is_active=True).first()
        if user is None:
            raise CommandError(
                f"There is no active user called '{options['username']}'. Correct the name, or activate the account."
            )
        key = {"uidb64": urlsafe_base64_encode(force_bytes(user.pk)), "token": default_token_generator.make_token(user)}
        self.stdout.write(reverse("password_reset_confirm", kwargs=key))
        days = settings.PASSWORD_RESET_TIMEOUT / 86_400
        self.stderr.write(
            f"Put the address of the server in front of it and send it to {user}. It works once, for {days:g} days."
        )
