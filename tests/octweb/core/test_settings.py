"""Settings from the environment: a retired name is refused, and the error states the new one."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from octweb.environment import refuse_old, refuse_weak_proxy_secret, secret, secret_key, store_settings
from octweb.jobs.child import SECRET, environment_of_child
from tests.conftest import ROOT


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


def test_secret_comes_from_its_variable_or_file(monkeypatch, tmp_path):
    monkeypatch.delenv("OCTWEB_SECRET_KEY")
    assert secret("OCTWEB_MAIL_PASSWORD") == ""
    path = tmp_path / "password"
    path.write_text("  pass word\n")
    monkeypatch.setenv("OCTWEB_MAIL_PASSWORD_FILE", str(path))
    monkeypatch.setenv("OCTWEB_SECRET_KEY_FILE", str(path))
    assert secret("OCTWEB_MAIL_PASSWORD") == "pass word"
    assert secret_key(tmp_path / "data") == "pass word"
    monkeypatch.setenv("OCTWEB_MAIL_PASSWORD", "other")
    with pytest.raises(ImproperlyConfigured, match="are both set; keep one of them") as refused:
        secret("OCTWEB_MAIL_PASSWORD")
    assert "pass word" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "words"), [(None, "No such file"), (b"", "is empty"), (b" \n", "is empty"), (b"\xff", "not UTF-8")]
)
def test_unusable_file_of_a_secret_is_refused_by_name(monkeypatch, tmp_path, content, words):
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv("OCTWEB_METRICS_TOKEN_FILE", str(path))
    with pytest.raises(ImproperlyConfigured, match=f"OCTWEB_METRICS_TOKEN_FILE names '{path}'.*{words}"):
        secret("OCTWEB_METRICS_TOKEN")


def test_keys_of_the_bucket_come_from_files(monkeypatch, tmp_path):
    place = {"folder": tmp_path, "endpoint": ""}
    assert "secret_key" not in store_settings("s3://trees/files", **place)["OPTIONS"]
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
        (tmp_path / name).write_text(f"{name} value\n")
        monkeypatch.setenv(f"{name}_FILE", str(tmp_path / name))
    options = store_settings("s3://trees/files", **place)["OPTIONS"]
    assert (options["access_key"], options["secret_key"]) == ("AWS_ACCESS_KEY_ID value", "AWS_SECRET_ACCESS_KEY value")


def test_key_of_the_bucket_in_a_file_goes_with_one_in_a_variable(monkeypatch, tmp_path):
    """Given only one of the two, boto3 would sign with no key."""
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "the id")
    (tmp_path / "key").write_text("the key\n")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY_FILE", str(tmp_path / "key"))
    options = store_settings("s3://trees/files", folder=tmp_path, endpoint="")["OPTIONS"]
    assert (options["access_key"], options["secret_key"]) == ("the id", "the key")


def test_children_start_with_sign_on_by_the_proxy(monkeypatch):
    monkeypatch.setenv("OCTWEB_REMOTE_USER_HEADER", "X-Remote-User")
    monkeypatch.setenv("OCTWEB_REMOTE_USER_SECRET", "s" * 40)
    environment = environment_of_child()
    header, value = (environment.get(f"OCTWEB_REMOTE_USER_{name}", "") for name in ("HEADER", "SECRET"))
    assert value == ""
    refuse_weak_proxy_secret(header, value)


def test_debug_page_hides_the_password_of_the_database():
    code = "from django.views.debug import get_default_exception_reporter_filter as f; print(f().get_safe_settings())"
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "octweb.settings",
        "DATABASE_URL": "postgresql://octweb:hidden-word@database/octweb",
    }
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert "DATABASES" in shown
    assert "hidden-word" not in shown


def test_every_secret_of_the_settings_may_come_from_a_file():
    code = (ROOT / "octweb" / "settings.py").read_text(encoding="utf-8")
    plain = re.findall(r'(?:text|environ\.get)\("(\w+)"', code)
    assert [name for name in plain if SECRET.search(name) and not name.startswith("OCTWEB_S3_")] == [
        "OCTWEB_DOSSIER_KEY"
    ]
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert [name for name in re.findall(r'secret\("(\w+)"\)', code) if f"`{name}_FILE`" not in page] == []
