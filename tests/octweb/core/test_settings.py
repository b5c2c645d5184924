"""Settings from the environment: a retired name is refused, and the error states the new one."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from octweb.environment import refuse_old, secret_key


def test_old_mail_setting_is_refused_with_its_new_name(monkeypatch):
    refuse_old("SMTP", "MAIL")
    monkeypatch.setenv("OCTWEB_SMTP_HOST", "mail.example.org")
    with pytest.raises(ImproperlyConfigured, match="OCTWEB_SMTP_HOST has no effect any more; set OCTWEB_MAIL_HOST"):
        refuse_old("SMTP", "MAIL")


def test_secret_key_is_written_at_first_use_only(monkeypatch, tmp_path):
    monkeypatch.delenv("OCTWEB_SECRET_KEY")
    key = secret_key(tmp_path / "data")
    assert not (tmp_path / "data").exists()
    assert len(key) > 80
    assert (tmp_path / "data" / "secret_key").read_text() == str(key)
    assert str(secret_key(tmp_path / "data")) == str(key)


def test_secret_key_without_a_folder_says_what_to_set(monkeypatch, tmp_path):
    monkeypatch.delenv("OCTWEB_SECRET_KEY")
    (tmp_path / "file").touch()
    with pytest.raises(ImproperlyConfigured, match="Set OCTWEB_DATA_DIR to a folder that can be written"):
        str(secret_key(tmp_path / "file" / "data"))
