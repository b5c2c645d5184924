"""Forms and pages for new passwords, which can also revoke API tokens."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.contrib.auth.views import PasswordChangeView, PasswordResetConfirmView, PasswordResetView
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from octweb.core.forms import SaidForm
from octweb.serving.actions import revoke_all_tokens


class RevokeTokens(SaidForm):
    """Checkbox of a password form that also revokes the user's tokens."""

    revoke_tokens = forms.BooleanField(
        required=False,
        initial=True,
        label="Revoke all my API tokens",
        help_text="Programs that use them need new ones.",
    )

    def save(self, commit: bool = True) -> Any:
        with transaction.atomic():
            user = super().save(commit)
            if self.cleaned_data["revoke_tokens"]:
                revoke_all_tokens(user)
        return user


class ChangeForm(RevokeTokens, PasswordChangeForm):
    """Form with the old and the new password."""


class ResetForm(RevokeTokens, SetPasswordForm):
    """Form with a new password, reached through an emailed link."""


class PasswordChange(PasswordChangeView):
    """Page on which a signed-in user changes the password."""

    form_class = ChangeForm


class Reset(PasswordResetConfirmView):
    """Page that an emailed link opens to set a new password."""

    form_class = ResetForm


def request_reset(request: HttpRequest) -> HttpResponse:
    """Show the form that sends the link. If mail is not configured, say what to do instead."""
    if not settings.EMAIL_HOST:
        return render(request, "registration/password_reset_no_mail.html")
    return PasswordResetView.as_view()(request)
