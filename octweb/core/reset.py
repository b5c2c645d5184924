"""Reset forgotten passwords by mail, or through an administrator without mail."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.views import PasswordResetView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def request_reset(request: HttpRequest) -> HttpResponse:
    """Show the form that sends the link, or what to do if mail is not configured."""
    if not settings.EMAIL_HOST:
        return render(request, "registration/password_reset_no_mail.html")
    return PasswordResetView.as_view()(request)
