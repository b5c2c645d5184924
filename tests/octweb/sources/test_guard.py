"""A query of a user reads its database, and nothing else of the server."""

from __future__ import annotations

import os

import pytest

from octweb.datasets.sources import NamedSource
from trainer.counts import sample
from trainer.counts.database import PostgresSource, QueryGuard
from trainer.counts.opening import list_tables, open_source, table_query
from trainer.counts.sample import read_sample
from trainer.errors import DataError

GUARD = QueryGuard(seconds=10)


def source_label(address: str) -> str:
    """Return the name that errors of the library give a server."""
    return PostgresSource._label(None, address)


def test_guarded_query_reads_no_file(places):
    folder, database = places
    query = f"SELECT * FROM '{folder / 'a.parquet'}'"
    assert len(read_sample(f"duckdb:{database}", query=query, most=5)) == 5
    with pytest.raises(DataError, match="disabled"):
        read_sample(f"duckdb:{database}", query=query, guard=GUARD)


@pytest.mark.parametrize("guard", [None, GUARD])
def test_query_of_duckdb_writes_no_temporary_file(places, guard):
    _, database = places
    before = sorted(database.parent.iterdir())
    query = "SELECT current_setting('temp_directory') AS place FROM loans ORDER BY random()"
    rows = read_sample(f"duckdb:{database}", query=query, guard=guard, most=2)
    assert rows.column("place").to_pylist() == ["", ""]
    assert sorted(database.parent.iterdir()) == before


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
@pytest.mark.parametrize("host", ["db", "DB.Internal.example", "[fd00::7]"])
def test_errors_of_a_server_name_the_source_only(scheme, host):
    source = NamedSource(name="bank", address=f"{scheme}://reader:s3cret@{host}:5433/ledger")
    plain = host.strip("[]")
    errors = [
        f'connection to server at "{plain}" (10.1.2.3), port 5433 failed: FATAL:  role "reader" does not exist',
        f'could not translate host name "{plain}" to address: Name or service not known',
        'FATAL:  no pg_hba.conf entry for host "10.1.2.3", user "reader", database "ledger", no encryption',
        f"The database '{source_label(source.address)}' cannot be opened: timeout of {plain.lower()}. Correct the URL.",
    ]
    for error in errors:
        hidden = source.hide(error)
        assert "bank" in hidden
        for secret in (plain, plain.lower(), "10.1.2.3", "5433", "reader", "ledger", "s3cret"):
            assert secret not in hidden, hidden
    assert source.hide('column "user" does not exist') == 'column "user" does not exist'


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1) AS a; DROP TABLE loans; SELECT * FROM (SELECT 1",
        "DROP TABLE loans",
        "SET enable_external_access = true",
        "COPY loans TO '/tmp/stolen.csv'",
        "SELECT * FROM loans) AS a LIMIT 1 -- ",
    ],
)
def test_sample_is_of_one_select_only(places, query):
    _, database = places
    try:
        rows = read_sample(f"duckdb:{database}", query=query, guard=GUARD, most=5)
    except DataError:
        rows = None
    assert rows is None or len(rows) <= 5
    with open_source(f"duckdb:{database}", query="SELECT count(*) AS n FROM loans") as source:
        assert next(source.pieces()).rows.column("n").to_pylist() == [400]


@pytest.mark.django_db  # the tests on PostgreSQL include those that use the database
@pytest.mark.skipif(not os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="needs PostgreSQL")
@pytest.mark.parametrize("before", ["SELECT", "SELECT set_config('statement_timeout', '0', false),"])
def test_postgresql_stops_a_long_query(before):
    pytest.importorskip("adbc_driver_postgresql.dbapi", reason="the driver is not installed")
    with pytest.raises(DataError, match="statement timeout"):
        read_sample(os.environ["DATABASE_URL"], query=f"{before} pg_sleep(600)::text AS a", guard=QueryGuard(seconds=1))


def test_tables_and_files_are_listed(places):
    folder, database = places
    assert list_tables(f"duckdb:{database}") == ["main.loans"]
    assert list_tables(str(folder)) == ["a.parquet", "b.parquet"]


def test_sample_with_huge_cells_is_refused(places, monkeypatch):
    _, database = places
    monkeypatch.setattr(sample, "SAMPLE_BYTES", 5_000_000)
    query = "SELECT repeat('x', 2000000) AS a FROM loans"
    assert len(read_sample(f"duckdb:{database}", query=query, guard=GUARD, most=2)) == 2
    with pytest.raises(DataError, match="The first 3 rows have 6 MB, but at most 5 MB"):
        read_sample(f"duckdb:{database}", query=query, guard=GUARD, most=3)


def test_listed_tables_can_be_read(tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed (requirements-databases.txt)")
    path = tmp_path / "odd.duckdb"
    with duckdb.connect(str(path)) as connection:
        for name in ("2024.loans", 'a "b"', '"c"', "ümläut; x"):
            connection.execute(f'CREATE TABLE "{name.replace(chr(34), 2 * chr(34))}" AS SELECT 1 AS a')
    names = list_tables(f"duckdb:{path}")
    assert 'main."2024.loans"' in names
    assert len(names) == 4
    for name in names:
        assert len(read_sample(f"duckdb:{path}", query=table_query(name), guard=GUARD)) == 1, name


def test_sample_of_a_folder_has_rows_of_each_file(places):
    folder, _ = places
    rows = read_sample(str(folder), most=20)
    assert len(rows) == 20
    first = read_sample(str(folder / "a.parquet"), most=10).column("income").to_pylist()
    assert rows.column("income").to_pylist()[:10] == first
