"""Fixtures of sources: a folder and a database of the settings, users, and a function that runs jobs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.contrib.auth.models import Permission

from octweb.datasets.choice import ColumnChoice, ReadOptions
from octweb.datasets.sources import chosen_rows
from octweb.runs.tasks import train_run
from octweb.sources import actions
from octweb.sources.actions import CountSettings
from octweb.sources.tasks import count_source

ROWS = 400
PASSWORD = "geheim-4711"


@pytest.fixture(scope="session")
def loans():
    """Provide rows in which `income` and `colour` decide the class, with some noise."""
    rng = np.random.default_rng(5)
    income = rng.integers(0, 100, ROWS)
    colour = rng.choice(["red", "green", "blue"], ROWS)
    good = (income > 40) ^ (colour == "red") ^ (rng.random(ROWS) < 0.1)
    customer = [f"c{i % 37}" for i in range(ROWS)]
    return pa.table({"income": income, "colour": colour, "customer": customer, "paid": np.where(good, "yes", "no")})


@pytest.fixture(scope="session")
def places(loans, tmp_path_factory):
    """Provide a folder with two files, and a DuckDB file with the same rows."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed (requirements-databases.txt)")
    folder = tmp_path_factory.mktemp("loans")
    pq.write_table(loans.slice(0, 150), folder / "a.parquet")
    pq.write_table(loans.slice(150), folder / "b.parquet")
    database = tmp_path_factory.mktemp("database") / "bank.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.register("given", loans)
        connection.execute("CREATE TABLE loans AS SELECT * FROM given")
    return folder, database


@pytest.fixture
def sources(settings, tmp_path, places):
    """Provide the sources of the settings: a folder, a database, one with a password, and one for a group."""
    folder, database = places
    settings.DATA_DIR = tmp_path / "data"
    settings.FORK_SERVER = False
    settings.MAX_TRAINING_THREADS = 1
    addresses = {
        "folder": str(folder),
        "bank": f"duckdb:{database}",
        "secret": f"postgresql://reader:{PASSWORD}@127.0.0.1:1/bank",
    }
    named = {name: {"address": address, "groups": ()} for name, address in addresses.items()}
    settings.SECRET_SOURCES = named | {"risk": {"address": str(folder), "groups": ("risk",)}}
    return settings.SECRET_SOURCES


@pytest.fixture
def counter(owner):
    """Provide the owner with the permission to count sources."""
    owner.user_permissions.add(Permission.objects.get(codename="use_sources"))
    return type(owner).objects.get(pk=owner.pk)


@pytest.fixture
def sampled(sources, counter, media):
    """Provide a function that stages a sample of the counter."""
    from octweb.datasets import actions as datasets

    def stage(**record):
        return datasets.stage_sample(owner=counter, rows=chosen_rows(counter, {"source": "bank"} | record))

    return stage


@pytest.fixture
def work():
    """Provide a function that runs a job with a real child process, as a worker would."""

    def do(job):
        task = count_source if isinstance(job, actions.SourceCount) else train_run
        task.func(str(job.pk))
        job.refresh_from_db()
        return job

    return do


@pytest.fixture
def counted(sampled, work):
    """Provide the finished count of a query with folds."""
    upload = sampled(query="SELECT * FROM loans WHERE income < 90;")
    job = actions.start_from_preview(
        upload,
        name="Loans",
        reading=ReadOptions(),
        choice=ColumnChoice(target="paid"),
        settings=CountSettings(depth=2, bins=4, folds=3, key="customer"),
    )
    return work(job)
