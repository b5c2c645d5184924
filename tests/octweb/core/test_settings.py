"""Settings from the environment: a name that has no effect any more is refused with the one that has."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from octweb.environment import refuse_old


def test_an_old_name_of_the_mail_settings_is_refused_and_the_new_one_said(monkeypatch):
    refuse_old("SMTP", "MAIL")
    monkeypatch.setenv("OCTWEB_SMTP_HOST", "mail.example.org")
    with pytest.raises(ImproperlyConfigured, match="OCTWEB_SMTP_HOST has no effect any more; set OCTWEB_MAIL_HOST"):
        refuse_old("SMTP", "MAIL")
