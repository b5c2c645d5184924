"""Fixtures of batch predictions: a file for a model, and jobs."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from octweb.batch import actions
from tests.octweb.small_models import csv_of_small_table


def rows_csv(name: str = "rows.csv", content: str | bytes | None = None) -> SimpleUploadedFile:
    content = csv_of_small_table() if content is None else content
    return SimpleUploadedFile(name, content.encode() if isinstance(content, str) else content)


@pytest.fixture
def job(media, model):
    return actions.enqueue(owner=model.owner, model=model, file=rows_csv(), source_name="rows.csv")


@pytest.fixture
def work(settings, tmp_path):
    """Provide a function that runs a job with a real child process, as a worker would, and returns its status."""
    from octweb.batch.tasks import predict_batch

    settings.DATA_DIR = tmp_path / "data"

    def do(job) -> str:
        status = predict_batch.func(str(job.pk))
        job.refresh_from_db()
        return status

    return do
