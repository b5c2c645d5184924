"""Reset forgotten passwords by mail or, without mail, through an administrator."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.views import PasswordResetView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def request_reset(request: HttpRequest) -> HttpResponse:
    """Show the form that sends the link. If mail is not configured, say what to do instead."""
    if not settings.EMAIL_HOST:
        return render(request, "registration/password_reset_no_mail.html")
    return PasswordResetView.as_view()(request)
