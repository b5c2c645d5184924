"""Predictions for columns, CSV and Arrow bodies equal those for JSON rows, and errors name the place."""

from __future__ import annotations

import csv
import io
import json
import resource

import numpy as np
import polars
import pyarrow as pa
import pytest

from octweb.registry.prediction.request_bodies import ARROW_FILE, ARROW_STREAM, CSV
from tests.octweb.small_models import small_table

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]  # these tests only parse bodies


def records(n: int = 40) -> list[dict]:
    table, _ = small_table()
    colours = table.columns[3].schema.categories
    cells = table.matrix()[:n].tolist()
    return [{"width": a, "height": b, "flag": int(c), "colour": colours[int(d)]} for a, b, c, d in cells]


def columns(n: int = 40) -> dict[str, list]:
    return {name: [r[name] for r in records(n)] for name in records(1)[0]}


def csv_text(n: int = 40) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, records(1)[0])
    writer.writeheader()
    writer.writerows(records(n))
    return out.getvalue().encode()


def arrow(table: pa.Table | None = None, *, file: bool = False, **options) -> bytes:
    table = pa.table(columns()) if table is None else table
    sink = io.BytesIO()
    new = pa.ipc.new_file if file else pa.ipc.new_stream
    with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=7)
    return sink.getvalue()


def post(client, model, body, kind="application/json", accept=None, query=""):
    data = json.dumps(body) if isinstance(body, dict) else body
    headers = {} if accept is None else {"Accept": accept}
    return client.post(f"/api/v1/models/{model.pk}/predict/{query}", data, content_type=kind, headers=headers)


@pytest.fixture
def expected(client_of, owner, model):
    return post(client_of(owner), model, {"rows": records()}).json()["predictions"]


def flat(prediction: dict) -> dict:
    shares = {f"probability {c}": p for c, p in prediction["probabilities"].items()}
    return {"label": prediction["label"], **shares, "leaf": prediction["leaf"]}


def test_columns_of_json(client_of, owner, model, expected):
    answer = post(client_of(owner), model, {"columns": columns()}).json()
    assert "predictions" not in answer
    got = [dict(zip(answer["columns"], row, strict=True)) for row in zip(*answer["columns"].values(), strict=True)]
    assert got == [flat(p) for p in expected]
    explained = post(client_of(owner), model, {"columns": columns(2)}, query="?explain=true").json()
    assert explained["predictions"][0]["path"]


@pytest.mark.parametrize("kind", [CSV, f"{CSV}; charset=utf-8"])
def test_csv_in_and_csv_out(client_of, owner, model, expected, kind):
    answer = post(client_of(owner), model, csv_text(), kind)
    assert (answer.status_code, answer["Content-Type"]) == (200, CSV)
    assert (answer["Octweb-Model"], answer["Octweb-Model-Version"]) == ("small-cart", "1")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [r.pop("row") for r in rows] == [str(i) for i in range(1, 41)]
    assert rows == [{k: str(v) for k, v in flat(p).items()} for p in expected]


BODIES = {
    "stream": (arrow(), ARROW_STREAM),
    "file": (arrow(file=True), ARROW_FILE),
    "dictionary": (
        arrow(pa.table(columns() | {"colour": pa.array(columns()["colour"]).dictionary_encode()})), ARROW_STREAM,
    ),
    "float32": (arrow(pa.table(columns() | {"flag": pa.array(columns()["flag"], pa.float32())})), ARROW_STREAM),
    "booleans and long texts": (
        arrow(
            pa.table(
                columns()
                | {"flag": pa.array([bool(f) for f in columns()["flag"]]), "colour": pa.array(columns()["colour"], pa.large_string())}
            )
        ),
        ARROW_STREAM,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_arrow_in_and_arrow_out(client_of, owner, model, expected, name):
    answer = post(client_of(owner), model, *BODIES[name])
    assert (answer.status_code, answer["Content-Type"]) == (200, ARROW_STREAM), answer.content
    assert pa.ipc.open_stream(answer.content).read_all().to_pylist() == [flat(p) for p in expected]


@pytest.mark.parametrize(
    "body", [({"rows": records()}, "application/json"), (csv_text(), CSV), (arrow(), ARROW_STREAM)]
)
@pytest.mark.parametrize("accept", ["application/json", CSV, ARROW_STREAM])
def test_accept_decides_where_it_asks(client_of, owner, model, expected, body, accept):
    answer = post(client_of(owner), model, *body, accept=accept)
    assert (answer.status_code, answer["Content-Type"]) == (200, accept)
    if accept == "application/json":
        assert answer.json()["predictions"] == expected
    elif accept == CSV:
        assert answer.content.decode().count("\n") == 41
    else:
        assert pa.ipc.open_stream(answer.content).read_all()["label"].to_pylist() == [p["label"] for p in expected]


WRONG = [
    ({"columns": []}, "application/json", 400, "columns"),
    ({"columns": {}}, "application/json", 400, "columns"),
    ({"columns": {"width": 3}}, "application/json", 400, "width"),
    ({"columns": {"width": [1, 2], "height": [1]}}, "application/json", 400, "differ in length"),
    ({"columns": {"width": [1], "rows": []}}, "application/json", 400, "differ in length"),
    ({"columns": {"width": ["x"], "height": [1], "flag": [1], "colour": ["red"]}}, "application/json", 422, "'width'"),
    ({"columns": {"wide": [1]}}, "application/json", 422, "'wide'"),
    ({"columns": columns(2), "rows": []}, "application/json", 400, "columns"),
    (b"width,height,flag\n1,2,0\n", CSV, 422, "colour"),
    (b"width,height,flag,colour\n1,wide,0,red\n", CSV, 422, "height"),
    (b"width,height,flag,colour\n1,2,0,red\n,2,0,red\n", CSV, 422, "Line 3: column 'width'"),
    (b"width,height,flag,colour\n1,2,0\n", CSV, 422, "Line 2"),
    (b'width,height,flag,colour\n"1,2,0,red\n', CSV, 422, "quote"),
    (b"\n", CSV, 422, "empty"),
    (b"\n" * 5000, CSV, 413, "rows"),
    (b"a" * 1_000_001, CSV, 413, "longer than 1,000,000 bytes"),
    (b"", ARROW_STREAM, 400, "rows"),
    (b"ARROW1 nonsense", ARROW_FILE, 400, "Arrow"),
    (arrow()[:200], ARROW_STREAM, 400, "Arrow"),
    (arrow(compression="zstd"), ARROW_STREAM, 400, "compressed"),
    (arrow(compression="lz4", file=True), ARROW_FILE, 400, "compressed"),
    (arrow(pa.table({"colour": pa.array(["x"]).dictionary_encode()}), compression="zstd"), ARROW_STREAM, 400, "compressed"),
    (arrow(pa.table([[1], [2]], names=["width", "width"])), ARROW_STREAM, 400, "two columns 'width'"),
    (arrow(pa.table(columns() | {"width": [[1.0]] * 40})), ARROW_STREAM, 400, "list"),
    (arrow(pa.table(columns() | {"width": [1.0] * 39 + [None]})), ARROW_STREAM, 422, "Row 40: column 'width'"),
    (b"x", "text/plain", 415, "text/plain"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("accept", [None, CSV])
def test_errors_are_reported(client_of, owner, model, settings, case, accept):
    body, kind, status, words = case
    settings.MAX_PREDICT_ROWS = 1000
    answer = post(client_of(owner), model, body, kind, accept)
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json"), answer.content
    assert words in answer.json()["detail"]


@pytest.mark.parametrize(
    "body", [(csv_text(), CSV), (arrow(), ARROW_STREAM), ({"columns": columns()}, "application/json")]
)
def test_limits_and_permissions(client_of, owner, stranger, model, settings, body):
    assert post(client_of(stranger), model, *body).status_code == 404
    assert post(client_of(), model, *body).status_code == 401
    settings.MAX_PREDICT_ROWS = 39
    assert post(client_of(owner), model, *body).status_code == 413
    settings.MAX_PREDICT_BYTES = settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    assert post(client_of(owner), model, *body).status_code == 413


def test_other_answers_are_406_and_explain_is_for_json(client_of, owner, model):
    client = client_of(owner)
    assert post(client, model, {"rows": records(1)}, accept="image/png").status_code == 406
    assert post(client, model, csv_text(), CSV, query="?explain=1").status_code == 400
    assert post(client, model, csv_text(), CSV, "application/json", "?explain=1").json()["predictions"][0]["path"]


def test_huge_unpacked_dictionary_is_refused(client_of, owner, model):
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1000, np.int32)), pa.array(["x" * 100_000]))
    table = pa.table({"width": [1.0] * 1000, "height": [1.0] * 1000, "flag": [1] * 1000, "colour": long})
    answer = post(client_of(owner), model, arrow(table), ARROW_STREAM)
    assert (answer.status_code, "unpacks to more than" in answer.json()["detail"]) == (413, True)


def test_texts_match_polars(client_of, owner, model, expected):
    out = io.BytesIO()
    polars.from_arrow(pa.ipc.open_stream(arrow()).read_all()).write_ipc_stream(out)
    assert "string_view" in str(pa.ipc.open_stream(out.getvalue()).schema)
    answer = post(client_of(owner), model, out.getvalue(), ARROW_STREAM)
    assert pa.ipc.open_stream(answer.content).read_all().to_pylist() == [flat(p) for p in expected]


def views(length: int, count: int) -> pa.Array:
    """Return views of one text, which is stored only once."""
    one = pa.array(["x" * length], pa.string_view())
    view = one.buffers()[1].to_pybytes()[:16]
    return pa.Array.from_buffers(pa.string_view(), count, [None, pa.py_buffer(view * count), one.buffers()[2]])


@pytest.mark.parametrize("packed", [False, True])
def test_views_and_words_that_share_their_room_are_refused(client_of, owner, model, packed):
    shared = views(1_000_000, 200)
    if packed:
        shared = pa.DictionaryArray.from_arrays(pa.array(np.zeros(200, np.int32)), shared)
    table = pa.table({"width": [1.0] * 200, "height": [1.0] * 200, "flag": [1] * 200, "colour": shared})
    body = arrow(table)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = post(client_of(owner), model, body, ARROW_STREAM)
    assert (answer.status_code, "unpacks to more than" in answer.json()["detail"]) == (413, True)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # in kB


WORDS = {
    "booleans": pa.array([True, False]), "bytes": pa.array([1, 0], pa.int8()), "halves": pa.array([1, 0], pa.float16()),
    "nulls": pa.nulls(2), "long texts": pa.array(["1", "0"], pa.large_string()), "views": pa.array(["1", "0"], pa.string_view()),
    "lists": pa.array([[1], [0]]), "dates": pa.array([1, 0], pa.date32()),
}  # fmt: skip


@pytest.mark.parametrize("kind", WORDS)
def test_dictionaries_of_every_type_are_read_or_refused(client_of, owner, model, kind):
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1], pa.int8()), WORDS[kind])
    table = pa.table({"width": [1.0] * 3, "height": [1.0] * 3, "flag": words, "colour": ["red"] * 3})
    answer = post(client_of(owner), model, arrow(table), ARROW_STREAM)
    assert answer.status_code == (400 if kind in ("nulls", "lists", "dates") else 200), answer.content


def test_carriage_return_line_ends_are_counted(client_of, owner, model, settings):
    settings.MAX_PREDICT_ROWS = 100
    body = b"width,height,flag,colour\r" + b"ab\r" * 5_000_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = post(client_of(owner), model, body, CSV)
    assert (answer.status_code, "too many" in answer.json()["detail"]) == (413, True)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # in kB


def test_damaged_arrow_bodies_are_never_a_server_error(client_of, owner, model):
    rng = np.random.default_rng(3)
    good = arrow()
    client = client_of(owner)
    seen = set()
    for _ in range(150):
        bad = bytearray(good)
        for at in rng.integers(0, len(bad), rng.integers(1, 6)):
            bad[at] = rng.integers(0, 256)
        seen.add(post(client, model, bytes(bad), ARROW_STREAM).status_code)
    assert seen <= {200, 400, 413, 422}
    assert seen >= {200, 400}
