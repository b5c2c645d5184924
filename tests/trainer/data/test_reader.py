"""Files become tables with correct cells and line numbers, or a DataError with place and remedy."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.seeds import seeds
from trainer.data.reader import ReadLimits, load, load_for_model, read_table
from trainer.errors import DataError
from trainer.table import ColumnKind, MissingPolicy


@pytest.fixture
def write(tmp_path):
    def write(content: bytes | str, name: str = "t.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def cells(raw):
    return [column.to_pylist() for column in raw.columns]


def refusal(path, **options) -> DataError:
    with pytest.raises(DataError) as caught:
        read_table(path, **options)
    return caught.value


PLAIN = "a,b,class\n1,x,p\n2,y,q\n"


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        "\ufeff" + PLAIN,
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        PLAIN.replace(",", "|"),
        "\n\n" + PLAIN + "\n  \n\n",
        PLAIN.rstrip("\n"),
        'a,"b","class"\n"1",x,p\n2,"y",q\n',
    ],
)
def test_the_same_table_in_many_spellings(write, content):
    raw = read_table(write(content))
    assert raw.names == ("a", "b", "class")
    assert cells(raw) == [["1", "2"], ["x", "y"], ["p", "q"]]


def test_encodings(write):
    text = "stadt,class\nKöln,ä\nBonn,b\n"
    for encoding in ("utf-8", "utf-8-sig", "cp1252", "latin-1", "utf-16"):
        raw = read_table(write(text.encode(encoding)), encoding=encoding)
        assert cells(raw)[0] == ["Köln", "Bonn"]
    error = refusal(write("stadt,class\nМосква,a\n".encode("cp1251")))
    assert "byte 13 (line 2)" in str(error)
    assert "cp1252" in str(error)
    assert read_table(write(text.encode("utf-16"))).detected.encoding == "utf-16"
    assert "not known" in str(refusal(write(PLAIN), encoding="klingon"))


def test_line_numbers_survive_quoted_line_breaks_and_blank_lines(write):
    raw = read_table(write('a,class\n"one\ntwo",p\n\n3,q\n   \n"say ""hi"", twice",p\n'))
    assert cells(raw)[0] == ["one\ntwo", "3", 'say "hi", twice']
    assert raw.line_numbers.tolist() == [2, 5, 7]


def test_quotes_inside_unquoted_values_are_characters(write):
    raw = read_table(write('size,class\n5" pipe,p\n"a, b",q\n6" x 7",p\n'))
    assert cells(raw)[0] == ['5" pipe', "a, b", '6" x 7"']


def test_all_ragged_rows_are_listed(write):
    lines = ["a,b,c", *("1,2,3" for _ in range(40))]
    for i in range(5, 35):
        lines[i] += ",4"
    error = refusal(write("\n".join(lines)))
    assert error.problems[0] == "Line 6 has 4 values; the header has 3."
    assert len(error.problems) == 21
    assert "10 more" in error.problems[-1]
    assert "Line 3 has 1 value; the header has 2." in refusal(write("a,b\n1,2\n3\n")).problems


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"\n \n", "empty"),
        (b"a,b\n", "no row"),
        (b"a,a,b\n1,2,3\n", "'a' appears 2 times (columns 1, 2)"),
        (b"a,,b\n1,2,3\n", "header of column 2 is empty"),
        (b'a,b\n1,2\n"3,4\n5,6\n', "Line 3: the quote"),
        (b'a,b\n"1"x,2\n', "Line 2: text follows a closing quote"),
        (b"PK\x03\x04junk", "Excel"),
        (b"%PDF-1.7", "PDF"),
        (bytes(range(256)) * 4, "DataError"),
        (b"\x1f\x8b\x08broken", "gzip"),
        (gzip.compress(PLAIN.encode(), mtime=0)[:-12], "gzip"),
        (b"PAR1 but no more", "Parquet"),
        (b"a,b\n1,\x002\n", "zero"),
    ],
)
def test_non_table_is_refused(write, content, word):
    error = refusal(write(content))
    assert word == "DataError" or word in str(error)


def test_limits(write):
    path = write(PLAIN * 2)
    assert "larger" in str(refusal(path, limits=ReadLimits(bytes=10)))
    assert "rows" in str(refusal(write(PLAIN), limits=ReadLimits(rows=1)))
    assert "columns" in str(refusal(write(PLAIN), limits=ReadLimits(columns=2)))
    assert "cells" in str(refusal(write(PLAIN), limits=ReadLimits(cells=5)))
    bomb = write(gzip.compress(b"a,b\n" + b"1,2\n" * 2_000_000), "bomb.csv.gz")
    assert "unpacks" in str(refusal(bomb, limits=ReadLimits(unpacked_bytes=10**6)))
    assert len(read_table(write(gzip.compress(PLAIN.encode()) + gzip.compress(b"3,z,p\n"), "two.csv.gz"))) == 3


def test_a_file_without_header(write):
    raw = read_table(write("1,x\n2,y\n"), header=False)
    assert raw.names == ("column 1", "column 2")
    assert len(raw) == 2
    assert read_table(write("1,2\n3,4\n")).detected.header_sure < 0.5


def test_parquet_keeps_types(tmp_path):
    table = pa.table(
        {
            "f": pa.array([0.1, None, 1e300]),
            "i": pa.array([1, 2, 2**60]),
            "b": pa.array([True, False, True]),
            "d": pa.array(["x", "y", "x"]).dictionary_encode(),
            "t": pa.array([datetime.date(2020, 1, 2)] * 3),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    raw = read_table(tmp_path / "t.parquet")
    assert cells(raw) == [[0.1, None, 1e300], [1, 2, 2**60], [True, False, True], ["x", "y", "x"], ["2020-01-02"] * 3]
    pq.write_table(pa.table({"l": pa.array([[1], [2]])}), tmp_path / "l.parquet")
    assert "neither number nor text" in str(refusal(tmp_path / "l.parquet"))


def rows_by_the_standard_library(content: str) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(content, newline="")) if row]


@seeds(60)
def test_random_quoted_tables_agree_with_the_standard_library(write, seed):
    rng = random.Random(seed)
    words = ["", "a", 'q"q', "x,y", "l\nm", '"', '""', " s ", "7", ";", "ü", ',"\n"']
    rows = [[f"h{j}" for j in range(3)], *([rng.choice(words) for _ in range(3)] for _ in range(rng.randint(1, 30)))]
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n", quoting=rng.choice([csv.QUOTE_ALL, csv.QUOTE_MINIMAL])).writerows(rows)
    raw = read_table(write(out.getvalue()), delimiter=",")
    assert [list(row) for row in zip(*cells(raw), strict=True)] == rows_by_the_standard_library(out.getvalue())[1:]


def test_gaps_are_learned_dropped_refused_or_a_category(write):
    path = write("n,k,class\n1,a,p\n,b,q\n3,,p\n4,a,q\n5,b,\n")
    table, _, report = load(path, target="class")
    assert table.row_numbers.tolist() == [2, 3, 4, 5]
    assert report.dropped_by_column == {"class": 1}
    assert np.isnan(table.columns[0].values).tolist() == [False, True, False, False]
    assert table.columns[1].schema.categories == ("a", "b", "(missing)")
    table, _, report = load(path, target="class", default_missing=MissingPolicy.DROP)
    assert table.row_numbers.tolist() == [2, 5]
    assert (report.rows_read, report.rows_dropped) == (5, 3)
    assert report.dropped_by_column == {"n": 1, "k": 1, "class": 1}
    table, _, report = load(path, target="class", default_missing=MissingPolicy.CATEGORY)
    assert table.columns[1].schema.categories == ("a", "(missing)")  # the only row with b has no n, so it is dropped
    assert table.row_numbers.tolist() == [2, 4, 5]
    with pytest.raises(DataError) as caught:
        load(path, target="class", default_missing=MissingPolicy.REFUSE)
    assert any(p.startswith("Line 3: column 'n'") for p in caught.value.problems)
    assert any(p.startswith("Line 6: column 'class'") for p in caught.value.problems)


@pytest.mark.parametrize(
    ("content", "options", "word"),
    [
        ("a,class\n1,p\n2,p\n", {}, "two"),
        ("a,class\n1,p\n1,q\n", {}, "no usable column"),
        ("class\np\nq\n", {}, "no usable column"),
        ("a,class\n1,p\n2,q\n", {"target": "clas"}, "Did you mean 'class'?"),
        ("a,class\n1,p\n2,q\n", {"kinds": {"A": ColumnKind.NUMERIC}}, "Did you mean 'a'?"),
        ("a,class\n1,p\nx,q\n", {"kinds": {"a": ColumnKind.NUMERIC}}, "Line 3: column 'a' is numeric, but has 'x'"),
        ("a,class\n1,p\ninf,q\n", {}, "Line 3: column 'a' is numeric, but has 'inf'"),
        ("a,class\n1,p\n1e999,q\n", {}, "Line 3"),
        ("a,class\n1,p\n2,q\n", {"kinds": {"a": ColumnKind.BINARY}}, "Line 3: column 'a' is binary"),
        ("a,class\n9007199254740993,p\n2,q\n", {"kinds": {"a": ColumnKind.NUMERIC}}, "2^53"),
        ("a,class\n,p\n,q\n", {}, "no usable column"),
    ],
)
def test_untrainable_table_is_refused(write, content, options, word):
    with pytest.raises(DataError) as caught:
        load(write(content), **{"target": "class"} | options)
    assert word in str(caught.value)


def test_rows_for_a_model(write):
    plain = write("n,k,b,class\n1,x,0,p\n2,y,1,q\n3,x,1,p\n")
    table, labels, _ = load(plain, target="class", default_missing=MissingPolicy.DROP)
    path = write("extra,b,k,n,class\n0,1,x,5,q\n0,0,new,6,p\n0,1,y,,r\n", "other.csv")
    rows = load_for_model(path, table.schema, target="class", classes=labels.classes)
    assert rows.table.matrix()[0].tolist() == [5.0, 0.0, 1.0]
    assert rows.unknown == {"k": 1}
    assert rows.usable.tolist() == [True, True, False]
    learned = load(plain, target="class")[0].schema
    assert load_for_model(path, learned, target="class", classes=labels.classes).usable.all()
    refused = load_for_model(path, learned, target="class", classes=labels.classes, refused=[0])
    assert refused.usable.tolist() == [True, True, False]
    assert rows.labels.codes.tolist() == [1, 0, -1]
    assert rows.extra_columns == ("extra",)
    with pytest.raises(DataError, match="lacks 1 of the 3 columns"):
        load_for_model(write("N2,k,b\n1,x,0\n"), table.schema)
    assert load_for_model(write("k,b\nx,0\n"), table.schema, used=[1, 2]).absent_columns == ("n",)


def mutate(content: bytes, rng: random.Random) -> bytes:
    data = bytearray(content)
    kind = rng.randrange(9)
    if kind == 0:
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del data[rng.randrange(len(data)) :]
    elif kind == 2:
        data.insert(rng.randrange(len(data)), ord('"'))
    elif kind == 3:
        first = data.split(b"\n")[0].split(b",")
        data[: len(b",".join(first))] = b",".join(rng.choices(first, k=len(first)))
    elif kind == 4:
        data.insert(rng.randrange(len(data)), rng.choice(b",;\t\n\r\0\xff\x80"))
    elif kind == 5:
        start = rng.randrange(len(data))
        del data[start : start + rng.randint(1, 40)]
    elif kind == 6:
        start = rng.randrange(len(data))
        data[start:start] = rng.randbytes(rng.randint(1, 30))
    elif kind == 7:
        start = rng.randrange(len(data))
        data[start:start] = rng.choice(
            [b"1e999", b"inf", b"nan", b"-", b"9" * 400, b"\xef\xbb\xbf", "é".encode("utf-16")]
        )
    else:
        rng.shuffle(lines := data.split(b"\n"))
        data = bytearray(b"\n".join(lines))
    return bytes(data)


def originals() -> list[tuple[str, bytes]]:
    rng = random.Random(1)
    lines = ["age,city,ok,class"]
    lines += [
        f'{rng.randint(18, 90)},"Sankt ""{rng.choice("ABC")}"", Ort",{rng.choice(["true", "false"])},{rng.choice("pq")}'
        for _ in range(25)
    ]
    text = ("\n".join(lines) + "\n").encode()
    plain = b"a,b,class\n" + b"".join(b"%d,%d,%d\n" % (i, i * i % 7, i % 3) for i in range(30))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": list(range(30)), "s": ["x", "y", "z"] * 10, "class": ["p", "q"] * 15}), sink)
    return [
        ("t.csv", text), ("t.csv", plain), ("t.csv", plain.replace(b",", b";")), ("t.csv.gz", gzip.compress(text)),
        ("t.parquet", sink.getvalue().to_pybytes()),
    ]  # fmt: skip


@seeds(250)
def test_a_malformed_file_is_read_or_refused_and_nothing_else(write, seed):
    rng = random.Random(seed)
    name, content = originals()[seed % 5]
    for _ in range(rng.randint(1, 3)):
        content = mutate(content, rng) or b"x"
    try:
        table, labels, _ = load(write(content, name), target="class")
    except DataError:
        return
    assert len(table) == len(labels.codes) > 0
    assert labels.counts().all()
