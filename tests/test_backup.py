"""Backups are consistent, restore completely, and are refused when damaged, before anything is touched."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from octweb.core import backup as backups
from octweb.core import spool
from octweb.core.faults import BackupError
from tests.conftest import ROOT

FILL = """
import io, json, django; django.setup()
from django.contrib.auth import get_user_model
from django.core.management import call_command
from octweb.datasets import actions
from tests.octweb.runs.conftest import CSV
call_command("migrate", interactive=False, verbosity=0)
user = get_user_model().objects.create_superuser("olga", password="a long password")
actions.create(owner=user, file=io.BytesIO(CSV.encode()), source_name="small.csv", target="class")
"""
LOOK = """
import json, django; django.setup()  # twice in the first process, which changes nothing
from django.conf import settings
from django.contrib.auth import get_user_model
from octweb.datasets import actions
from octweb.datasets.models import Dataset
user, dataset = get_user_model().objects.get(), Dataset.objects.get()
table, labels = actions.load(dataset)  # checks the digest of the file
get_user_model().objects.create_user("next").delete()  # ids go on after those of the backup
print(json.dumps({"password": user.check_password("a long password"), "rows": len(table), "key": str(settings.SECRET_KEY),
    "file": dataset.file.path}))
"""


def call(environment, *command: str) -> subprocess.CompletedProcess:
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200)


def manage(environment, *arguments: str) -> subprocess.CompletedProcess:
    return call(environment, sys.executable, "manage.py", *arguments)


@pytest.fixture
def place(tmp_path):
    """Provide the environment of an installation with this data folder, on SQLite or the PostgreSQL of `url`."""

    def at(name: str, url: str = "") -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OCTWEB_", "DATABASE_URL"))}
        if url:
            (tmp_path / f"{name}.url").write_text(url + "\n")
            kept["DATABASE_URL_FILE"] = str(tmp_path / f"{name}.url")
        return kept | {"OCTWEB_DATA_DIR": str(tmp_path / name), "DJANGO_SETTINGS_MODULE": "octweb.settings"}

    return at


def databases() -> list[str]:
    """Return the kinds of database that can be tried here."""
    return ["sqlite", "postgresql"] if os.environ.get("DATABASE_URL", "").startswith("postgres") else ["sqlite"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", databases())
def test_restore_brings_back_the_backup(place, tmp_path, kind):
    urls = ["", ""]
    if kind == "postgresql":
        urls = [new_database(name) for name in ("before", "after")]
    before = place("before", urls[0])
    after = place("after", urls[1])
    copy = str(tmp_path / "copy")
    filled = call(before, sys.executable, "-c", FILL + LOOK)
    assert filled.returncode == 0, filled.stderr
    done = manage(before, "backup", copy)
    assert done.returncode == 0, done.stderr
    assert oct(os.stat(copy).st_mode & 0o777) == "0o700"
    assert "The backup is complete" in manage(after, "restore", copy, "--check").stdout
    assert not (tmp_path / "after").exists()
    done = manage(after, "restore", copy)
    assert done.returncode == 0, done.stderr
    seen = [json.loads(one.stdout.splitlines()[-1]) for one in (filled, call(after, sys.executable, "-c", LOOK))]
    assert seen[1]["file"].startswith(str(tmp_path / "after"))
    assert [s | {"file": ""} for s in seen] == [{"password": True, "rows": 120, "key": seen[0]["key"], "file": ""}] * 2
    # what exists is overwritten only on request
    refused = manage(after, "restore", copy)
    assert (refused.returncode, "add --overwrite. Nothing was changed" in refused.stderr) == (1, True)
    assert manage(after, "restore", copy, "--overwrite").returncode == 0
    again = json.loads(call(after, sys.executable, "-c", LOOK).stdout.splitlines()[-1])
    assert again == seen[1]
    upgraded = manage(after, "upgrade", "--backup", str(tmp_path / "before-upgrade"))
    assert upgraded.returncode == 0, upgraded.stderr
    assert "Migrations to apply: none\nThe main pages answer." in upgraded.stdout


def new_database(name: str) -> str:
    """Create an empty database on the server of DATABASE_URL, and return its address."""
    import psycopg

    url = os.environ["DATABASE_URL"]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "backup_{name}"')
        connection.execute(f'CREATE DATABASE "backup_{name}"')
    return url.rpartition("/")[0] + f"/backup_{name}"


@pytest.fixture
def installation(settings, tmp_path, monkeypatch):
    """Provide a small SQLite installation: its database has one table besides that of the migrations."""
    data = tmp_path / "data"
    (data / "files" / "datasets").mkdir(parents=True)
    (data / "files" / "datasets" / "a.csv").write_text("a,b\n1,2\n")
    (data / "spool").mkdir()
    (data / "spool" / "s.frames").write_bytes(b"frames")
    (data / "secret_key").write_text("a key")
    settings.DATA_DIR = data
    settings.DOSSIER_KEY = data / "dossier_key.pem"
    settings.STORAGES = {
        "default": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(data / "files")},
        },
        "staticfiles": settings.STORAGES["staticfiles"],
    }
    path = data / "octweb.sqlite3"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE django_migrations (app TEXT, name TEXT)")
        database.execute("INSERT INTO django_migrations VALUES ('auth', '0001_initial')")
        database.execute("CREATE TABLE pair (x INTEGER, y INTEGER)")
        database.commit()
    monkeypatch.setitem(backups.database_copy.connection.settings_dict, "NAME", str(path))
    monkeypatch.setattr(backups.database_copy, "has_tables", path.exists)
    return data


sqlite_only = pytest.mark.skipif(databases() != ["sqlite"], reason="writes a SQLite file")


@sqlite_only
def test_backup_during_writes_is_consistent(installation, tmp_path):
    """Each transaction of the writer adds two equal numbers, and a file whose number the database names."""
    stop = threading.Event()

    def write():
        number = 0
        with closing(sqlite3.connect(installation / "octweb.sqlite3", timeout=20)) as database:
            while not stop.is_set():
                number += 1
                (installation / "files" / f"{number}.csv").write_text(str(number))
                with database:
                    database.execute("INSERT INTO pair VALUES (?, 0)", [number])
                    database.execute("UPDATE pair SET y = x WHERE x = ?", [number])
                if number > 20:  # deleted, first its row and then its file
                    with database:
                        database.execute("DELETE FROM pair WHERE x = ?", [number - 20])
                    (installation / "files" / f"{number - 20}.csv").unlink()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for i in range(5):
            folder = tmp_path / f"copy-{i}"
            backups.write_backup(folder)
            with closing(sqlite3.connect(folder / "database" / "database.sqlite3")) as copy:
                pairs = copy.execute("SELECT x, y FROM pair").fetchall()
            assert all(x == y for x, y in pairs)
            assert pairs == [] or max(x for x, _ in pairs) - min(x for x, _ in pairs) <= 21
    finally:
        stop.set()
        writer.join()
    names = {path.name for path in (folder / "files").iterdir()}
    assert {f"{x}.csv" for x, _ in pairs[5:]} <= names
    backups.read_backup(folder)


def _cut(folder: Path) -> None:
    path = folder / "database" / "database.sqlite3"
    path.write_bytes(path.read_bytes()[:-100])


def _flip(folder: Path) -> None:
    path = folder / "files" / "datasets" / "a.csv"
    path.write_text("a,b\n1,3\n")


def _change_manifest(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace("auth", "axes"))


def _cut_manifest(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text()[:200])


DAMAGES = {
    "'database/database.sqlite3' has changed": _cut,
    "'files/datasets/a.csv' has changed": _flip,
    "'secret_key' is missing": lambda folder: (folder / "secret_key").unlink(),
    "was changed": _change_manifest,
    "is damaged": _cut_manifest,
    "not a complete backup": lambda folder: (folder / "manifest.json").unlink(),
}


@sqlite_only
@pytest.mark.parametrize("words", DAMAGES)
def test_damaged_backup_is_refused(installation, tmp_path, words):
    folder = tmp_path / "copy"
    backups.write_backup(folder)
    backups.read_backup(folder)
    DAMAGES[words](folder)
    with pytest.raises(BackupError, match=words):
        backups.read_backup(folder)


@sqlite_only
def test_backup_of_a_newer_version_is_refused(installation, tmp_path):
    with closing(sqlite3.connect(installation / "octweb.sqlite3")) as database, database:
        database.execute("INSERT INTO django_migrations VALUES ('runs', '9999_later')")
    backups.write_backup(tmp_path / "copy")
    with pytest.raises(BackupError, match=r"'runs\.9999_later' is unknown here"):
        backups.read_backup(tmp_path / "copy")


@sqlite_only
def test_restore_overwrites_only_on_request(installation, tmp_path):
    backups.write_backup(tmp_path / "copy")
    backup = backups.read_backup(tmp_path / "copy")
    (installation / "files" / "datasets" / "a.csv").write_text("changed")
    (installation / "files" / "later.csv").write_text("later")
    (installation / "secret_key").write_text("another key")
    with pytest.raises(BackupError, match=r"the database, the folder .*secret_key") as refused:
        backups.restore_backup(backup, overwrite=False)
    assert "Nothing was changed" in str(refused.value)
    assert (installation / "files" / "datasets" / "a.csv").read_text() == "changed"
    backups.restore_backup(backup, overwrite=True)
    assert (installation / "files" / "datasets" / "a.csv").read_text() == "a,b\n1,2\n"
    assert (installation / "secret_key").read_text() == "a key"
    assert (spool.folder() / "s.frames").read_bytes() == b"frames"
    assert sorted(path.name for path in (installation / "files").iterdir()) == ["datasets"]
    # into an empty place
    shutil.rmtree(installation)
    backups.restore_backup(backup, overwrite=False)
    assert (installation / "files" / "datasets" / "a.csv").read_text() == "a,b\n1,2\n"
    with closing(sqlite3.connect(installation / "octweb.sqlite3")) as database:
        assert database.execute("SELECT count(*) FROM django_migrations").fetchone() == (1,)


@sqlite_only
def test_killed_or_failed_backup_leaves_no_folder(installation, tmp_path, monkeypatch):
    (tmp_path / ".copy.part" / "files").mkdir(parents=True)  # left by a backup that was killed
    (tmp_path / ".copy.part" / "files" / "old.csv").touch()
    with pytest.raises(BackupError, match="exists already"):
        backups.write_backup(installation)

    def fail(folder):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(backups.database_copy, "copy_database", fail)
        with pytest.raises(OSError, match="No space"):
            backups.write_backup(tmp_path / "copy")
    assert not [path for path in tmp_path.iterdir() if "copy" in path.name]
    manifest = backups.write_backup(tmp_path / "copy")
    assert "files/old.csv" not in manifest["entries"]


@sqlite_only
def test_file_that_was_being_written_is_copied_whole(installation, tmp_path, monkeypatch):
    upload = installation / "files" / "datasets" / "b.csv"
    upload.write_text("a,b\n")
    copy_database = backups.database_copy.copy_database

    def copy_after_the_upload(folder):
        upload.write_text("a,b\n1,2\n")
        return copy_database(folder)

    monkeypatch.setattr(backups.database_copy, "copy_database", copy_after_the_upload)
    backups.write_backup(tmp_path / "copy")
    assert (tmp_path / "copy" / "files" / "datasets" / "b.csv").read_text() == "a,b\n1,2\n"
    backups.read_backup(tmp_path / "copy")


@sqlite_only
def test_killed_restore_can_be_repeated(installation, tmp_path, monkeypatch):
    backups.write_backup(tmp_path / "copy")
    backup = backups.read_backup(tmp_path / "copy")
    with monkeypatch.context() as patch:
        patch.setattr(backups.shutil, "rmtree", lambda folder, **options: None)  # as if killed before the last step
        backups._swap(backups._stage(backup.folder / "files", installation / "files"), installation / "files")
    assert (installation / "files" / ".replaced" / "datasets").is_dir()
    backups.restore_backup(backup, overwrite=True)
    assert sorted(path.name for path in (installation / "files").iterdir()) == ["datasets"]


@sqlite_only
@pytest.mark.parametrize("name", ["files/planted.csv", "database/database.sqlite3-wal", "dossier_key.pem"])
def test_backup_with_an_added_file_is_refused(installation, tmp_path, name):
    backups.write_backup(tmp_path / "copy")
    (tmp_path / "copy" / name).write_text("planted")
    with pytest.raises(BackupError, match=f"'{name}' was added"):
        backups.read_backup(tmp_path / "copy")


@sqlite_only
def test_linked_file_of_a_backup_is_refused(installation, tmp_path):
    backups.write_backup(tmp_path / "copy")
    key = tmp_path / "copy" / "secret_key"
    key.rename(tmp_path / "elsewhere")
    key.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BackupError, match="'secret_key' is missing"):
        backups.read_backup(tmp_path / "copy")


@sqlite_only
def test_check_writes_nothing_beside_the_backup(installation, tmp_path, monkeypatch):
    """A backup on a read-only disk can be checked. With write access, SQLite would make a log beside the file."""
    backups.write_backup(tmp_path / "copy")
    seen = []

    class Connection(sqlite3.Connection):
        def execute(self, *arguments):
            cursor = super().execute(*arguments)
            seen.append(sorted(path.name for path in (tmp_path / "copy" / "database").iterdir()))
            return cursor

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **options: connect(*a, factory=Connection, **options))
    backups.read_backup(tmp_path / "copy")
    assert seen == [["database.sqlite3"]]


@sqlite_only
def test_restore_over_a_database_in_use_is_refused(installation, tmp_path):
    backups.write_backup(tmp_path / "copy")
    backup = backups.read_backup(tmp_path / "copy")
    path = installation / "octweb.sqlite3"
    with closing(sqlite3.connect(path)) as server:
        server.execute("INSERT INTO pair VALUES (1, 1)")
        server.commit()
        with pytest.raises(BackupError, match="Stop the web server and all workers"):
            backups.restore_backup(backup, overwrite=True)
        server.execute("INSERT INTO pair VALUES (2, 2)")
        server.commit()
        assert server.execute("SELECT count(*) FROM pair").fetchone() == (2,)
    assert not list(installation.rglob("*restoring"))
    backups.restore_backup(backup, overwrite=True)
    path.write_bytes(b"damaged" * 1000)
    backups.restore_backup(backup, overwrite=True)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT count(*) FROM pair").fetchone() == (0,)


@sqlite_only
def test_restore_on_a_full_disk_leaves_nothing_behind(installation, tmp_path, monkeypatch):
    backups.write_backup(tmp_path / "copy")
    copyfile = shutil.copyfile

    def copy_until_full(source, target):
        if str(target).startswith(str(installation / "octweb")):
            Path(target).touch()
            raise OSError(28, "No space left on device", str(source), None, str(target))
        return copyfile(source, target)

    monkeypatch.setattr(shutil, "copyfile", copy_until_full)
    with pytest.raises(CommandError, match=r"stopped at '.*octweb.*': No space left"):
        call_command("restore", str(tmp_path / "copy"), "--overwrite")
    assert not list(installation.rglob("*restoring"))
    assert (installation / "files" / "datasets" / "a.csv").exists()


@sqlite_only
def test_backup_on_a_full_disk_says_so(installation, tmp_path):
    with closing(sqlite3.connect(installation / "octweb.sqlite3")) as database, database:
        database.execute("CREATE TABLE large AS SELECT zeroblob(3000000) AS content")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limits[1]))
    try:
        with pytest.raises(CommandError, match=r"The database cannot be copied: .*Check the space of the disk"):
            call_command("backup", str(tmp_path / "copy"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not [path for path in tmp_path.iterdir() if "copy" in path.name]


@sqlite_only
def test_second_backup_into_the_same_folder_is_refused(installation, tmp_path, monkeypatch):
    copy_database = backups.database_copy.copy_database

    def copy_and_start_another(folder):
        description = copy_database(folder)
        with pytest.raises(BackupError, match="Another process is writing"):
            backups.write_backup(tmp_path / "copy")
        return description

    monkeypatch.setattr(backups.database_copy, "copy_database", copy_and_start_another)
    backups.write_backup(tmp_path / "copy")
    backups.read_backup(tmp_path / "copy")


@sqlite_only
def test_backup_within_the_files_is_refused(installation, tmp_path):
    """A restore would move such a backup away with the files that it replaces."""
    with pytest.raises(BackupError, match="Name a folder outside"):
        backups.write_backup(installation / "files" / "copy")
    backups.write_backup(tmp_path / "copy")
    shutil.move(tmp_path / "copy", installation / "files" / "copy")
    with pytest.raises(BackupError, match="Move it to another place"):
        backups.restore_backup(backups.read_backup(installation / "files" / "copy"), overwrite=True)
    assert (installation / "files" / "copy" / "manifest.json").exists()


@pytest.mark.slow
def test_upgrade_after_a_killed_migration_completes(place, tmp_path):
    """The migration is killed once after a third of it. The next run applies the rest."""
    environment = place("killed")
    path = tmp_path / "killed" / "octweb.sqlite3"

    def applied() -> int:
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
                return database.execute("SELECT count(*) FROM django_migrations").fetchone()[0]
        except sqlite3.Error:  # not there yet
            return 0

    command = [sys.executable, "manage.py", "migrate"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as process:
        while applied() < 30 and process.poll() is None:
            pass
        process.kill()
    assert 0 < applied() < 100
    upgraded = manage(environment, "upgrade", "--backup", str(tmp_path / "copy"))
    assert upgraded.returncode == 0, upgraded.stderr
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert "Migrations to apply: none" in manage(environment, "upgrade", "--no-backup").stdout
