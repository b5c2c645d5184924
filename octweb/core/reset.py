"""A forgotten password: a link by mail where mail is configured; without mail an administrator makes the link."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.views import PasswordResetView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def request_reset(request: HttpRequest) -> HttpResponse:
    """The form that sends the link; where no mail is sent, what to do instead."""
    if not settings.EMAIL_HOST:
        return render(request, "registration/password_reset_no_mail.html")
    return PasswordResetView.as_view()(request)
