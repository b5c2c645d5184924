"""The checker reads the same rows as `load` with its own code, and refuses no true file."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet
import pytest

from tests.trainer.check.recount.odd_tables import odd_table
from trainer.check.recount import verdict, verify
from trainer.data.reader import load
from trainer.errors import DataError
from trainer.table import MissingPolicy
from trainer.training.run import TrainRequest, save, train


def unchecked(model, path):
    """Write the model file without a check of its schema and without waiting for the disk.

    Both take a third of the time for hundreds of tables.
    """
    path.write_text(json.dumps(model.to_json(), allow_nan=False))


def check(folder, path, reading, write=save, **asked):
    """Train on a table and check the model. The verdict must be good, whatever the table is."""
    table, labels, *_ = load(path, **reading)
    request = TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 2}, **asked)
    write(train(request).model, folder / "model.json")
    findings = verify(folder / "model.json", path)
    assert verdict(findings) == "recounted", (path, reading, [f for f in findings if f.verdict == "refuted"])


@pytest.mark.parametrize("begin", [0, pytest.param(40, marks=pytest.mark.slow)])
def test_unusual_tables_are_parsed_as_in_training(tmp_path, begin):
    trained = 0
    for seed in range(begin, begin + 40 if not begin else 470):
        path, reading = odd_table(tmp_path, seed)
        policy = MissingPolicy.CATEGORY if seed % 3 == 0 else MissingPolicy.DROP
        try:
            reading |= {"default_missing": policy}
            check(tmp_path, path, reading, write=unchecked if begin else save, test_share=0.2 * (seed % 2))
        except DataError as error:
            if "model.json" in str(error):
                raise
            continue  # the trainer refuses this table, so there is nothing to check
        trained += 1
    assert trained >= (20 if not begin else 400)  # out of 430


@pytest.mark.parametrize(
    "text",
    [
        "x,flag,class\n" + "".join(f"{i},{'true' if i % 3 else 'false'},{'ab'[i % 2]}\n" for i in range(20)),
        "x,flag,class\n" + "".join(f"{i},{'TRUE' if i % 3 else 'FALSE'},{'ab'[i % 2]}\n" for i in range(20)),
        "x,word,class\n" + "".join(f'{i},"one\ntwo{i % 2}",{"ab"[i % 2]}\n' for i in range(20)),
        "x,word,class\n" + "".join(f"{i},one\u2028two{i % 2},{'ab'[i % 2]}\n" for i in range(20)),
        "x,word,class\n" + "".join(f"{i},one\x85two{i % 2},{'ab'[i % 2]}\n" for i in range(20)),
        "x,word,class\n" + "".join(f"{i},one\x0ctwo{i % 2},{'ab'[i % 2]}\n" for i in range(20)),
        '"x\ny",class\n' + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(20)),
        '"x,y,z,w";class\n' + "".join(f"{i};{'ab'[i % 2]}\n" for i in range(20)),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_tables_that_were_refused(tmp_path, text, encoding):
    path = tmp_path / "rows.csv"
    path.write_bytes(text.encode(encoding))
    check(tmp_path, path, {"target": "class"})


@pytest.mark.parametrize("target", [pa.array([True, False] * 10), pa.array([0.5, 1.0] * 10), pa.array([1.0, 2.0] * 10)])
def test_a_target_of_parquet_that_is_no_text(tmp_path, target):
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"x": pa.array(np.arange(20) // 3), "class": target}), path)
    check(tmp_path, path, {"target": "class"})


def test_spaces_are_trimmed_as_in_training():
    spaces = [chr(i) for i in range(0x110000) if not 0xD800 <= i < 0xE000]
    words = pa.array([f"{s}a{s}" for s in spaces])
    trimmed = pc.utf8_trim_whitespace(words).to_pylist()
    assert [s for s, own, word in zip(spaces, words.to_pylist(), trimmed, strict=True) if own.strip() != word] == []


def test_rows_of_an_unlisted_class_are_reported(tmp_path):
    """Two of three classes are listed, and the rows of the third one are left out."""
    lines = [f"{i % 7},{'abc'[i % 3]}" for i in range(90)]
    whole = tmp_path / "whole.csv"
    part = tmp_path / "part.csv"
    whole.write_text("x,class\n" + "\n".join(lines) + "\n")
    part.write_text("x,class\n" + "\n".join(line for line in lines if not line.endswith("c")) + "\n")
    check(tmp_path, part, {"target": "class"})
    findings = verify(tmp_path / "model.json", whole)
    assert verdict(findings) == "refuted"
    assert {f.claim for f in findings if f.verdict == "refuted"} >= {"categories and classes"}
    document = json.loads((tmp_path / "model.json").read_text())
    del document["rows"]
    (tmp_path / "model.json").write_text(json.dumps(document))
    assert verdict(verify(tmp_path / "model.json", whole)) == "refuted"


@pytest.mark.parametrize(
    ("encoding", "word"),
    [("koi8-r", "красный"), ("shift_jis", "赤い"), ("iso-8859-15", "20 €"), ("utf-32", "röt"), ("cp437", "röt")],
)
def test_an_encoding_that_somebody_gave_is_read_again(tmp_path, encoding, word):
    path = tmp_path / "rows.csv"
    n = 20
    rows = "".join(f"{i},{word if i % 3 else 'x'},{'ab'[i % 2]}\n" for i in range(n))
    path.write_bytes(f"size,{word} of all,class\n{rows}".encode(encoding))
    check(tmp_path, path, {"target": "class", "encoding": encoding})
