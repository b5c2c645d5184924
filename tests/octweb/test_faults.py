"""The n-th write to disk or database fails, for every n: everything is as before or as after, and nothing is lost."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from django.core.files.storage import FileSystemStorage
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from octweb.audit.models import Record
from octweb.core.backup import write_backup
from octweb.datasets import actions as datasets
from octweb.datasets.models import Dataset, Upload
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import ReviewEvent, TreeModel
from octweb.runs import actions as runs
from octweb.runs.models import TrainingRun
from octweb.runs.training import TrainingSupervisor
from tests.octweb.datasets.files import GOOD
from tests.octweb.small_models import trained

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
WRITES = ("INSERT", "UPDATE", "DELETE")
FILE_CALLS = (
    (os, "fsync"),
    (os, "replace"),
    (os, "rename"),
    (os, "link"),
    (os, "sync"),
    (shutil, "copyfile"),
    (Path, "rename"),
)


@contextmanager
def failing(nth: int) -> Iterator[list[str]]:
    """Let the n-th writing step inside fail. Yield the steps that were taken."""
    steps: list[str] = []

    def step(name: str, error: Exception) -> None:
        steps.append(name)
        if len(steps) == nth:
            raise error

    def file_call(real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            step(name, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
            return real(*arguments, **options)

        return call

    real_execute = CursorWrapper._execute
    real_commit = BaseDatabaseWrapper._commit
    real_save = FileSystemStorage._save

    def execute(self: Any, sql: str, *arguments: Any) -> Any:
        if str(sql).lstrip().startswith(WRITES):
            step(str(sql)[:40], OperationalError("disk I/O error"))
        return real_execute(self, sql, *arguments)

    def commit(self: Any) -> None:
        step("commit", OperationalError("disk I/O error"))
        real_commit(self)

    def save(self: Any, name: str, content: Any) -> str:
        step("write", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        return real_save(self, name, content)

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in FILE_CALLS:
            patch.setattr(owner, name, file_call(getattr(owner, name), name))
        patch.setattr(CursorWrapper, "_execute", execute)
        patch.setattr(BaseDatabaseWrapper, "_commit", commit)
        patch.setattr(FileSystemStorage, "_save", save)
        yield steps


MODELS = (Upload, Dataset, TreeModel, ReviewEvent, Record, TrainingRun)
MOST_STEPS = 60


def state_of(media: Path) -> dict[str, Any]:
    """Return all rows of the tables in question, and all stored files with their sizes."""
    rows = {model.__name__: sorted(map(repr, model._base_manager.values_list())) for model in MODELS}
    return rows | {
        "files": sorted((str(p.relative_to(media)), p.stat().st_size) for p in media.rglob("*") if p.is_file())
    }


def named_files() -> set[str]:
    names = [*Upload.objects.values_list("file", "rows"), *Dataset.objects.values_list("file", "counts")]
    return {name for pair in names for name in pair if name}


class Case(NamedTuple):
    """An operation: a function that makes what it needs, the operation itself, and a check of its success."""

    prepare: Callable[[], Any]
    act: Callable[[Any], Any]
    is_done: Callable[[Any], bool]


def upload_case(owner: Any, staff: Any, dataset: Any, folder: Path) -> Case:
    def act(_: Any) -> None:
        datasets.stage(owner=owner, file=io.BytesIO(GOOD), source_name="good.csv")

    return Case(lambda: Upload.objects.count(), act, lambda before: Upload.objects.count() == before + 1)


def confirm_case(owner: Any, staff: Any, dataset: Any, folder: Path) -> Case:
    def prepare() -> Any:
        return datasets.stage(owner=owner, file=io.BytesIO(GOOD), source_name="good.csv").pk

    def act(pk: Any) -> None:
        choice = datasets.ColumnChoice(target="label")
        datasets.confirm(Upload.objects.get(pk=pk), name="Good", reading=datasets.ReadOptions(), choice=choice)

    def is_done(pk: Any) -> bool:
        return not Upload.objects.filter(pk=pk).exists() and Dataset.objects.filter(name="Good").exists()

    return Case(prepare, act, is_done)


def training_case(owner: Any, staff: Any, dataset: Any, folder: Path) -> Case:
    result = folder / "model.json"
    result.write_text(json.dumps(trained("cart", depth=2)))
    child = SimpleNamespace(result=result, log=lambda: "")

    def prepare() -> TrainingRun:
        run = runs.enqueue(owner=owner, dataset=dataset, method="cart")
        TrainingRun.objects.filter(pk=run.pk).update(status="running", worker="w", attempt=1)
        run.refresh_from_db()
        return run

    def act(run: TrainingRun) -> None:
        supervisor = TrainingSupervisor(job_id=str(run.pk), worker="w", stopping=threading.Event())
        supervisor.attempt = 1
        supervisor.store(run, child, {"status": "heuristic"})

    def is_done(run: TrainingRun) -> bool:
        run.refresh_from_db()
        return run.status == "succeeded" and run.model is not None

    return Case(prepare, act, is_done)


def publish_case(owner: Any, staff: Any, dataset: Any, folder: Path) -> Case:
    def prepare() -> TreeModel:
        model = registry.register(owner=owner, document=trained("cart", depth=2), dataset=None, title="t")
        return registry.ask_for_approval(model, by=owner) or model

    def is_done(model: TreeModel) -> bool:
        model.refresh_from_db()
        return model.served_since is not None

    return Case(prepare, lambda model: registry.approve(model, by=staff, publish=True), is_done)


def backup_case(owner: Any, staff: Any, dataset: Any, folder: Path) -> Case:
    target = folder / "backups" / "copy"

    def is_done(_: Any) -> bool:
        assert [path.name for path in target.parent.iterdir()] == ["copy"]
        return (target / "manifest.json").exists()

    def prepare() -> None:
        shutil.rmtree(target.parent, ignore_errors=True)

    return Case(prepare, lambda _: write_backup(target), is_done)


@pytest.fixture
def dataset(owner, media):
    return datasets.create(owner=owner, file=io.BytesIO(GOOD), source_name="first.csv", target="label")


@pytest.mark.parametrize("case_of", [upload_case, confirm_case, training_case, publish_case, backup_case])
def test_each_failing_step_leaves_all_or_nothing(case_of, owner, staff, dataset, media, tmp_path):
    folder = tmp_path / "case"
    folder.mkdir()
    case = case_of(owner, staff, dataset, folder)
    subject = case.prepare()
    failures = 0
    for nth in range(1, MOST_STEPS):
        before = state_of(media)
        with failing(nth) as steps:
            try:
                case.act(subject)
            except Exception:
                if len(steps) < nth:  # not by this fault
                    raise
                failures += 1
                assert state_of(media) == before, (nth, steps)
                assert list((folder / "backups").glob("*")) == [], (nth, steps)
                continue
            finally:
                assert {name for name, _ in state_of(media)["files"]} >= named_files(), (nth, steps)
        assert case.is_done(subject), (nth, steps)
        if len(steps) < nth:
            break
        subject = case.prepare()  # the operation did its work although a step failed, such as tidying up
    assert len(steps) < nth < MOST_STEPS - 1
    assert failures >= 3
