"""Fixtures of all tests: benchmark data, users, and a separate data folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management.commands import flush

from octweb.core import tally
from octweb.jobs import fork_server

ROOT = Path(__file__).resolve().parent.parent


def bench_data() -> Path:
    """Return the folder of the shared benchmark data, whether it exists or not."""
    return Path(os.environ.get("OCTWEB_BENCH_DATA", ROOT.parent / "shared" / "data"))


def pytest_collection_modifyitems(config, items):
    """Order files with slow tests first.

    Worker processes take whole files, so no long one should be left at the end. With `--only-database`, leave out tests
    without a database.
    """
    if config.getoption("--only-database"):
        items[:] = [item for item in items if _uses_database(item)]
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def _uses_database(item: pytest.Item) -> bool:
    """Return whether the result of a test may depend on the kind of database."""
    if item.get_closest_marker("one_database"):
        return False
    asked = {"db", "transactional_db", "live_server"} & set(getattr(item, "fixturenames", ()))
    return bool(asked) or item.get_closest_marker("django_db") is not None


@pytest.fixture(scope="session")
def count(pytestconfig) -> int:
    """Provide the number of random instances for each variant on each back end."""
    return pytestconfig.getoption("--instances")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Provide the folder of the shared benchmark data. The test is skipped where they are absent."""
    folder = bench_data()
    if not (folder / "manifest.json").exists():
        pytest.skip("the shared benchmark data are not here; set OCTWEB_BENCH_DATA")
    return folder


@pytest.fixture
def media(settings, tmp_path):
    """Provide the folder for the uploaded files of this test. Static files need no manifest."""
    settings.MEDIA_ROOT = tmp_path / "files"
    settings.STORAGES = {
        "default": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(tmp_path / "files")},
        },
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    return tmp_path / "files"


@pytest.fixture(scope="session", autouse=True)
def _quick_passwords():
    # The usual hash is slow on purpose and would take half a second for each user of each test.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(scope="session", autouse=True)
def _list_of_erasures(tmp_path_factory):
    """Keep the decisions that tests erase out of the list of the installation."""
    settings.ERASURES = tmp_path_factory.mktemp("data") / "erasures.jsonl"


@pytest.fixture(scope="session", autouse=True)
def _light_flush():
    """Keep content types and permissions when a test flushes the database.

    Creating them again took 70 ms, and the flush itself takes 2 ms.
    """
    kept = {"django_content_type", "auth_permission"}

    def sql_flush(style, connection, **how):
        tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
        return connection.ops.sql_flush(style, [table for table in tables if table not in kept], **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush, "sql_flush", sql_flush)
        patch.setattr(flush, "emit_post_migrate_signal", lambda *_, **__: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_thread_that_writes_counts():
    """Keep the thread of `octweb.wsgi` from writing counts in the middle of a test.

    Some test modules import octweb.wsgi, some even before this fixture runs.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tally, "begin_with", lambda listener: None)
        patch.setattr(tally._state, "listener", None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _fork_server():
    """Run jobs of the tests as forks, like those of a worker, and also the scripts that tests start (`tests/processes.py`)."""
    fork_server.program = lambda: [sys.executable, str(ROOT / "tests" / "fork_server.py")]
    fork_server.keep()
    yield
    fork_server.give_up()


@pytest.fixture
def owner(django_user_model):
    return django_user_model.objects.create_user("olga", password="a long password")


@pytest.fixture
def stranger(django_user_model):
    return django_user_model.objects.create_user("sam", password="a long password")


@pytest.fixture
def staff(django_user_model):
    return django_user_model.objects.create_superuser("ada", password="a long password")
