"""Rows that Ibis reads are counted as those of a file; it compiles the query for warehouses that are not here."""

from __future__ import annotations

import sqlite3

import numpy as np
import pandas as pd
import pytest

from tests.trainer.counts.tables import KEY, TARGET, counted, random_rows, write_rows
from trainer.cli.dispatch import main
from trainer.counts.database import QueryGuard
from trainer.counts.opening import open_source
from trainer.errors import DataError, ParameterError

ibis = pytest.importorskip("ibis", reason="Ibis is not installed (requirements-ibis.in)")
QUERY = "SELECT * FROM loans"


@pytest.fixture
def database(tmp_path):
    """Provide a SQLite file with the rows of a CSV file beside it."""
    path = write_rows(random_rows(np.random.default_rng(2), empty=False), tmp_path / "rows.csv")
    with sqlite3.connect(tmp_path / "bank.sqlite") as connection:
        pd.read_csv(path).to_sql("loans", connection, index=False)
    return tmp_path


def test_ibis_counts_as_its_rows_in_a_file(database):
    of_file = counted(database / "rows.csv", database / "file")
    place = f"ibis:sqlite://{database / 'bank.sqlite'}"
    found = counted(place, database / "ibis", query=QUERY)
    assert (found.low == of_file.low).all()
    assert found.origin["engine"].startswith("Ibis ")
    assert found.origin["engine"].endswith(" on sqlite")
    command = ["count", place, "--query", QUERY, "--target", TARGET, "--bins", "4", "--ignore", KEY]
    assert main("octweb", [*command, "--output", str(database / "more")]) == 0


def test_mistakes_with_ibis_are_refused_by_name(database):
    place = f"ibis:sqlite://{database / 'bank.sqlite'}"
    with pytest.raises(DataError, match="failed"):
        counted(place, database / "none", query="SELECT nothing FROM nowhere")
    with pytest.raises(DataError, match="keep queries from writing"):
        open_source(place, query=QUERY, guard=QueryGuard(seconds=5))
    with pytest.raises(DataError, match="cannot be opened"):
        open_source("ibis:oracle9://host/x", query=QUERY)
    with pytest.raises(ParameterError, match="form ibis:"):
        open_source("ibis:bank", query=QUERY)


@pytest.mark.parametrize(("dialect", "quote"), [("snowflake", '"'), ("bigquery", "`"), ("databricks", "`")])
def test_selected_columns_are_compiled_for_warehouses(database, dialect, quote):
    with open_source(f"ibis:sqlite://{database / 'bank.sqlite'}", query=QUERY) as source:
        columns = source.rows.schema()
    rows = ibis.table(columns, name="loans")
    text = ibis.to_sql(rows.select("a", TARGET), dialect=dialect)
    assert f"{quote}{TARGET}{quote}" in text
    assert "colour" not in text
