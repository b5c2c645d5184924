"""The same rows give the same counts from files, partitions, an object store and databases."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.trainer.counts.tables import KEY, TARGET, counted, random_rows, write_rows
from trainer.counts.opening import open_source, table_query
from trainer.counts.recount import recount
from trainer.counts.train import train_counts
from trainer.errors import DataError, ParameterError

ALL = "SELECT * FROM loans"


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    """Provide random rows with numbers, words and empty cells."""
    header, *cells = random_rows(np.random.default_rng(11), classes=3)
    columns = {name: [row[j] or None for row in cells] for j, name in enumerate(header)}
    numbers = {name: [None if v is None else int(v) for v in columns[name]] for name in "abc"}
    return pa.table(columns | numbers)


@pytest.fixture(scope="module")
def of_file(rows, tmp_path_factory):
    """Provide the counts of the rows from a Parquet file."""
    folder = tmp_path_factory.mktemp("file")
    pq.write_table(rows, folder / "rows.parquet")
    return counted(folder / "rows.parquet", folder / "counts", folds=2, key=KEY)


@pytest.fixture
def database(rows, tmp_path):
    """Provide the URL of a DuckDB file with the rows."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed (requirements-databases.txt)")
    with duckdb.connect(str(tmp_path / "bank.duckdb")) as connection:
        connection.register("given", rows)
        connection.execute("CREATE TABLE loans AS SELECT * FROM given")
    return f"duckdb:{tmp_path / 'bank.duckdb'}"


def same_counts(one, other) -> bool:
    """Return whether two counts have the same questions, numbers and reasons."""
    questions = one.questions.to_json() == other.questions.to_json()
    return questions and (one.low == other.low).all() and (one.rows, one.left_out) == (other.rows, other.left_out)


def test_duckdb_counts_as_its_rows_in_a_file(of_file, database, tmp_path):
    counts = counted(database, tmp_path / "counts", query=ALL, folds=2, key=KEY)
    assert same_counts(counts, of_file)
    assert counts.origin["engine"].startswith("DuckDB ")
    assert counts.origin["query"] == ALL
    assert counts.source == "bank.duckdb"
    model = train_counts(counts, {"leaf_penalty": 0.01}).model
    with open_source(database, query=table_query("loans")) as source:
        assert recount(model, source).same


def test_duckdb_reads_files_that_a_query_names(of_file, rows, tmp_path):
    pytest.importorskip("duckdb", reason="DuckDB is not installed (requirements-databases.txt)")
    pq.write_table(rows, tmp_path / "rows.parquet")
    query = f"SELECT * FROM '{tmp_path / 'rows.parquet'}';"
    assert same_counts(counted("duckdb:", tmp_path / "counts", query=query, folds=2, key=KEY), of_file)


def test_query_is_counted_as_one_part_once(database, tmp_path):
    from trainer.counts.folder import merge

    first = counted(database, tmp_path / "first", query=ALL)
    again = counted(database, tmp_path / "again", query=ALL)
    assert first.sha256 == again.sha256
    with pytest.raises(DataError, match="would count twice"):
        merge([first, again])


def test_database_types_are_read_as_numbers_or_text(tmp_path):
    pytest.importorskip("duckdb", reason="DuckDB is not installed (requirements-databases.txt)")
    query = (
        "SELECT (i % 5)::DECIMAL(9, 2) AS amount, DATE '2026-01-01' + (i % 7)::INTEGER AS day, i % 2 = 0 AS even, "
        f"(i % 3)::HUGEINT AS huge, CASE WHEN i % 4 = 0 THEN 'no' ELSE 'yes' END AS {TARGET} FROM range(60) AS t(i)"
    )
    counts = counted("duckdb:", tmp_path / "counts", query=query, options={})
    assert counts.rows == 60
    kinds = {column.name: str(column.kind) for column in counts.questions.encoding.schema}
    assert (kinds["amount"], kinds["huge"], kinds["even"]) == ("numeric", "numeric", "binary")
    assert kinds["day days since 2026-01-01"] == "numeric"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT * FROM nothing", "query of 'bank.duckdb' failed"),
        ("SELECT * FROM loans WHERE a > 99", "returns no rows"),
        ("DROP TABLE loans", "query of 'bank.duckdb' failed"),
        ("BEGIN", "query of 'bank.duckdb' failed"),
        ("SELECT * FROM loans) AS a; SELECT * FROM (SELECT 1", "not one SELECT"),
        ("SELECT [1] AS list, * FROM loans", "neither number nor text"),
        ("SELECT INTERVAL 1 DAY AS pause, * FROM loans", "'pause' has the type .*, which is neither number nor text"),
    ],
)
def test_queries_that_cannot_be_counted_are_refused(database, tmp_path, query, words):
    with pytest.raises(DataError, match=words):
        counted(database, tmp_path / "counts", query=query)
    assert not (tmp_path / "counts").exists()
    assert counted(database, tmp_path / "counts", query=ALL).rows


@pytest.mark.parametrize("query", ["COPY (SELECT 1 AS class) TO '{}'", "ATTACH '{}' AS other; SELECT 1 AS class"])
def test_a_query_of_duckdb_that_writes_a_file_is_refused(tmp_path, query):
    pytest.importorskip("duckdb", reason="DuckDB is not installed (requirements-databases.txt)")
    with pytest.raises(DataError, match="query of 'duckdb'"):
        counted("duckdb:", tmp_path / "counts", query=query.format(tmp_path / "written"))
    assert not list(tmp_path.iterdir())


def test_recount_of_a_query_without_the_columns_says_so(database, of_file):
    model = train_counts(of_file, {"leaf_penalty": 0.01}).model
    with (
        open_source(database, query="SELECT 1 AS other") as source,
        pytest.raises(DataError, match="none of the columns"),
    ):
        recount(model, source)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://anna:ge/heim@127.0.0.1:1/bank",
        "postgresql://anna:ge@heim@127.0.0.1:1/bank",
        "postgresql://anna:ge%heim@127.0.0.1:1/bank",
        "postgresql://anna:ge[heim@127.0.0.1:1/bank",
        "postgres:anna:geheim@127.0.0.1/bank",
    ],
)
def test_no_part_of_a_password_with_special_signs_is_shown(tmp_path, url):
    with pytest.raises(ParameterError, match="PGPASSWORD") as caught:
        counted(url, tmp_path / "counts", query=ALL)
    assert "heim" not in str(caught.value)


def test_database_and_query_must_come_together(tmp_path):
    path = write_rows(random_rows(np.random.default_rng(1)), tmp_path / "rows.csv")
    with pytest.raises(ParameterError, match="needs a query"):
        counted("duckdb:bank", tmp_path / "counts")
    with pytest.raises(ParameterError, match="only databases"):
        counted(path, tmp_path / "counts", query=ALL)


def test_missing_database_is_not_created(tmp_path):
    pytest.importorskip("duckdb", reason="DuckDB is not installed (requirements-databases.txt)")
    with pytest.raises(DataError, match="no database"):
        counted(f"duckdb:{tmp_path / 'bank.duckdb'}", tmp_path / "counts", query=ALL)
    assert not (tmp_path / "bank.duckdb").exists()


def test_a_missing_driver_is_named(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql.dbapi", None)
    with pytest.raises(DataError, match=r"needs adbc_driver_postgresql\. Install it with"):
        counted("postgresql://127.0.0.1/bank", tmp_path / "counts", query=ALL)


@pytest.mark.django_db  # the tests on PostgreSQL include those that use the database
@pytest.mark.skipif(not os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="needs PostgreSQL")
def test_postgresql_counts_as_its_rows_in_a_file(of_file, rows, tmp_path):
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="the driver is not installed")
    url = os.environ["DATABASE_URL"]
    with dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("loans_of_a_test", rows, mode="replace")
        connection.commit()
    counts = counted(url, tmp_path / "counts", query=table_query("loans_of_a_test"), folds=2, key=KEY)
    assert same_counts(counts, of_file)
    assert counts.origin["snapshot"]
    assert "@" not in counts.source
    numbers = "SELECT a::numeric(9, 2), b::numeric, c::real, colour, same, person, class FROM loans_of_a_test"
    assert same_counts(counted(url, tmp_path / "numbers", query=numbers, folds=2, key=KEY), of_file)
    uuids = "SELECT md5(a::text)::uuid AS token, * FROM loans_of_a_test"
    assert counted(url, tmp_path / "uuids", query=uuids, key="token", folds=2).rows == counts.rows
    refused = [
        "DELETE FROM loans_of_a_test RETURNING *",
        "COPY loans_of_a_test TO PROGRAM 'cat'",
        "SELECT 1 / (a - a) AS class FROM loans_of_a_test",
    ]
    for query in refused:
        with pytest.raises(DataError, match="failed"):
            counted(url, tmp_path / "other", query=query)


def test_unreachable_database_is_reported_without_password(tmp_path):
    pytest.importorskip("adbc_driver_postgresql", reason="the driver is not installed (requirements-databases.txt)")
    with pytest.raises(DataError, match="cannot be opened") as caught:
        counted("postgresql://anna:hidden@127.0.0.1:1/bank", tmp_path / "counts", query=ALL)
    assert "hidden" not in str(caught.value)


def test_folders_give_their_rows_a_column(tmp_path, rows):
    for year, part in (("2024", rows.slice(0, 7)), ("2025", rows.slice(7)), ("2026", rows.slice(0, 0))):
        folder = tmp_path / "rows" / f"year={year}"
        folder.mkdir(parents=True)
        pq.write_table(part, folder / "part.parquet")
    counts = counted(tmp_path / "rows", tmp_path / "counts")
    years = pa.array(["2024"] * 7 + ["2025"] * (len(rows) - 7))
    pq.write_table(rows.append_column("year", years), tmp_path / "rows.parquet")
    assert same_counts(counts, counted(tmp_path / "rows.parquet", tmp_path / "plain"))
    assert "year" in {column.name for column in counts.questions.encoding.schema}
    assert len(counts.parts) == 2  # a file without rows is not a part


def test_an_object_store_counts_as_a_folder(tmp_path, rows, monkeypatch, of_file):
    server = pytest.importorskip("moto.server", reason="moto is not installed")
    from pyarrow import fs

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-key")
    store = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    store.start()
    try:
        host, port = store.get_host_and_port()
        files = fs.S3FileSystem(endpoint_override=f"{host}:{port}", scheme="http", allow_bucket_creation=True)
        files.create_dir("bank")
        with files.open_output_stream("bank/loans/1.parquet") as out:
            pq.write_table(rows.slice(0, 9), out)
        text = write_rows([rows.column_names, *_texts(rows.slice(9))], tmp_path / "2.csv").read_bytes()
        with files.open_output_stream("bank/loans/2.csv") as out:
            out.write(text)
        uri = f"s3://bank/loans?endpoint_override={host}:{port}&scheme=http"
        counts = counted(uri, tmp_path / "counts", folds=2, key=KEY)
        assert (counts.low == of_file.low).all()
        assert counts.source == "loans"
        assert [part.name for part in sorted(counts.parts, key=lambda part: part.name)] == ["1.parquet", "2.csv"]
        with pytest.raises(DataError, match="no file that ends in"):
            counted(uri.replace("loans", "nothing"), tmp_path / "none")
    finally:
        store.stop()


def _texts(rows: pa.Table) -> list[list[str]]:
    return [["" if cell is None else str(cell) for cell in row.values()] for row in rows.to_pylist()]
