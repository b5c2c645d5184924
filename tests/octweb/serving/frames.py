"""Data frames of pandas, polars, Arrow and JSON, and the interfaces that predict their rows."""

from __future__ import annotations

import base64
import contextlib
import csv
import io
import json
import math
import signal
import sqlite3
import warnings
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from django.core.files.uploadedfile import SimpleUploadedFile

import trainer
from octweb.batch import actions as batches
from octweb.batch.tasks import predict_batch
from octweb.jobs.models import RunStatus
from octweb.registry.lifecycle import actions
from octweb.registry.prediction.request_bodies import ARROW_STREAM
from tests.trainer.oracles.pmml_text import PmmlTree
from trainer.cli import dispatch
from trainer.data.formats.read_file import read_table
from trainer.data.parsing import ColumnParsing
from trainer.data.reader import rows_for_model
from trainer.errors import TrainerError
from trainer.prediction.mlflow_flavour import TreePredictor
from trainer.prediction.predict_file import predict_file
from trainer.table import ColumnKind, UnknownPolicy
from trainer.tree.export.code import to_python, to_sql
from trainer.tree.export.onnx import input_names, to_onnx
from trainer.tree.export.pmml import to_pmml
from trainer.tree.file import from_json, read_model

ROWS = 24
ODD = ("never seen", "blank texts", "marks")  # forms with cells that did not occur in training
REFUSED = "refused"
CHOICES = {
    "text": ["north", "south", "café", "10 to 20"], "codes as text": ["1", "2", "10", "30"], "codes": [1, 2, 10, 30],
    "truths": [True, False, False, True], "truths as text": ["true", "false", "false", "true"], "decimals as codes": [0.5, 1.0, 2.0, 7.25],
    "text with gaps": ["north", "south", None, "10 to 20"], "numbers": [1.0, 2.0, 10.5, -30.0], "counts": [1, 2, 10, 30],
    "numbers with gaps": [1.0, 2.0, None, -30.0], "padded codes": ["01", "02", "10", "0030"],
}  # fmt: skip
DECLARED = {"codes": "category", "decimals as codes": "category"}  # numbers that are declared as categories


def cells_of(kind: str, seed: int) -> list:
    """Return the cells of a column: each choice once, then random ones."""
    choices = CHOICES[kind]
    draw = np.random.default_rng(seed).integers(0, len(choices), ROWS - len(choices))
    return choices + [choices[i] for i in draw]


def decimals_of(cells: list) -> list:
    return [None if cell is None else Decimal(repr(cell)) for cell in cells]


def is_text(cells: list) -> bool:
    return any(isinstance(cell, str) for cell in cells)


def forms_of(cells: list) -> dict[str, object]:
    """Return the same column as frames of several libraries, each with the column `c` and a column `n` of numbers."""
    other = [float(i) for i in range(len(cells))]
    columns: dict[str, object] = {"objects": pd.Series(cells, dtype=object)}
    if is_text(cells):
        columns |= {"string": pd.Series(cells, dtype="string"), "category": pd.Series(cells, dtype="category")}
        columns |= {"arrow string": pd.Series(cells, dtype=pd.ArrowDtype(pa.string()))}
        columns |= {"ordered category": pd.Series(pd.Categorical(cells, ordered=True))}
        columns |= {"arrow large string": pd.Series(cells, dtype=pd.ArrowDtype(pa.large_string()))}
        columns |= {
            "blanks": pd.Series([c and f" {c} " for c in cells]),
            "capitals": pd.Series([c and c.upper() for c in cells]),
        }
        columns |= {"never seen": pd.Series([c and f"{c} (new)" for c in cells])}
        columns |= {"blank texts": pd.Series(["" if i % 3 == 0 else c for i, c in enumerate(cells)])}
        columns |= {"marks": pd.Series(["NA" if i % 3 == 0 else c for i, c in enumerate(cells)])}
    elif isinstance(cells[0], bool):
        columns |= {"bool": pd.Series(cells), "boolean": pd.Series(cells, dtype="boolean")}
        columns |= {"arrow bool": pd.Series(cells, dtype=pd.ArrowDtype(pa.bool_()))}
        columns |= {"texts": pd.Series([str(c) for c in cells])}
        columns |= {"marks": pd.Series(["NA" if i % 3 == 0 else str(c).lower() for i, c in enumerate(cells)])}
        columns |= {"blank texts": pd.Series([" " if i % 3 == 0 else str(c) for i, c in enumerate(cells)])}
        columns |= {"integers": pd.Series([int(c) for c in cells]), "floats": pd.Series([float(c) for c in cells])}
        columns |= {"sparse": pd.Series(pd.arrays.SparseArray([int(c) for c in cells], fill_value=0))}
        columns |= {"other numbers": pd.Series([2 * int(c) for c in cells])}
    else:
        floats = [math.nan if c is None else float(c) for c in cells]
        columns |= {"float64": pd.Series(floats), "Float64": pd.Series(cells, dtype="Float64")}
        columns |= {"float32": pd.Series(floats, dtype="float32"), "Float32": pd.Series(cells, dtype="Float32")}
        columns |= {"arrow decimal": pd.Series(decimals_of(cells), dtype=pd.ArrowDtype(pa.decimal128(12, 4)))}
        columns |= {"long doubles": pd.Series(np.array(floats, np.longdouble))}
        columns |= {"arrow double": pd.Series(cells, dtype=pd.ArrowDtype(pa.float64()))}
        columns |= {"sparse": pd.Series(pd.arrays.SparseArray(floats, fill_value=0.0))}
        columns |= {"decimals": pd.Series(decimals_of(cells), dtype=object)}
        columns |= {"category": pd.Series(floats).astype("category")}
        columns |= {"texts": pd.Series([None if c is None else f" {c} " for c in cells])}
        columns |= {"marks": pd.Series(["?" if i % 3 == 0 else c and str(c) for i, c in enumerate(cells)])}
        if all(c is None or float(c).is_integer() for c in cells):
            columns |= {"Int64": pd.Series(cells, dtype="Int64"), "Int8": pd.Series(cells, dtype="Int8")}
            columns |= {"arrow int16": pd.Series(cells, dtype=pd.ArrowDtype(pa.int16()))}
    frames: dict[str, object] = {name: pd.DataFrame({"c": column, "n": other}) for name, column in columns.items()}
    frames["polars"] = pl.DataFrame({"c": cells, "n": other})
    frames["arrow"] = pa.table({"c": cells, "n": other})
    if not is_text(cells) and not isinstance(cells[0], bool):
        frames["polars decimal"] = pl.DataFrame(
            {"c": pl.Series(decimals_of(cells), dtype=pl.Decimal(12, 4)), "n": other}
        )
        frames["polars float32"] = frames["polars"].with_columns(pl.col("c").cast(pl.Float32))
    if set(cells) <= {"true", "false"}:
        truths = [cell == "true" for cell in cells]
        frames |= {
            f"truths as {kind}": pd.DataFrame({"c": pd.Series(truths).astype(kind), "n": other})
            for kind in ("bool", "boolean", "int64")
        }
    if isinstance(cells[0], str) and cells[0].isdigit() and cells[0] != "01":
        frames |= {
            f"digits as {kind}": pd.DataFrame({"c": pd.Series(cells).astype(float).astype(kind), "n": other})
            for kind in ("int64", "float64", "Int64")
        }
    if is_text(cells):
        frames["polars categorical"] = frames["polars"].with_columns(pl.col("c").cast(pl.Categorical))
        levels = pl.Enum(sorted({cell for cell in cells if cell is not None}))
        frames["polars enum"] = frames["polars"].with_columns(pl.col("c").cast(levels))
        frames["arrow large string"] = pa.table({"c": pa.array(cells, pa.large_string()), "n": other})
        frames["arrow dictionary"] = pa.table({"c": pa.array(cells).dictionary_encode(), "n": other})
    return frames


def records_of(frame) -> list[dict]:
    """Return the rows in the form in which a client sends them in JSON."""
    columns = {
        name: [plain(v) for v in frame[name].to_pylist()]
        if isinstance(frame, pa.Table)
        else [plain(v) for v in frame[name].to_list()]
        for name in ("c", "n")
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def plain(cell):
    if cell is None or cell is pd.NA or (isinstance(cell, (float, np.floating)) and np.isnan(cell)):
        return None
    if isinstance(cell, (Decimal, np.longdouble)):
        return float(cell)
    return cell.item() if isinstance(cell, np.generic) else cell


def csv_of(frame) -> str:
    """Return the CSV text that the library itself writes."""
    if isinstance(frame, pd.DataFrame):
        return frame.to_csv(index=False)
    if isinstance(frame, pl.DataFrame):
        return frame.write_csv()
    sink = io.BytesIO()
    pa.csv.write_csv(pa.table({name: pa.array(frame[name].to_pylist()) for name in frame.column_names}), sink)
    return sink.getvalue().decode()


def parquet_of(frame, path) -> None:
    if isinstance(frame, pl.DataFrame):
        frame.write_parquet(path)
    elif isinstance(frame, pa.Table):
        pq.write_table(frame, path)
    else:
        dense = {name: pd.Series([plain(v) for v in column]) for name, column in frame.items()}
        native = (
            frame
            if "Sparse" not in str(frame["c"].dtype) and frame["c"].dtype != np.longdouble
            else pd.DataFrame(dense)
        )
        native.to_parquet(path)


def in_base64(inputs: list[dict]) -> list[dict]:
    """Return tensors whose texts are in base64, as MLServer's clients send them."""
    encoded = []
    for record in inputs:
        if record["datatype"] == "BYTES":
            data = [None if cell is None else base64.b64encode(cell.encode()).decode() for cell in record["data"]]
            record = record | {"data": data, "parameters": {"content_type": "base64"}}
        encoded.append(record)
    return encoded


def tensor(name: str, cells: list) -> dict:
    """Return a column as a tensor whose type follows from its cells."""
    kinds = {type(cell) for cell in cells} - {type(None)}
    datatype = (
        "BOOL"
        if kinds == {bool}
        else "INT64"
        if kinds == {int} and None not in cells
        else "BYTES"
        if str in kinds
        else "FP64"
    )
    data = [None if cell is None else float(cell) for cell in cells] if datatype == "FP64" else cells
    return {"name": name, "shape": [len(cells)], "datatype": datatype, "data": data}


def leaves_of(text: str):
    """Return the leaves of a predicted file, or REFUSED if a row has no answer."""
    leaves = [row["leaf"] for row in csv.DictReader(io.StringIO(text))]
    return REFUSED if "" in leaves else [int(leaf) for leaf in leaves]


def is_categorical(column) -> bool:
    return column.kind is ColumnKind.CATEGORICAL


class Doors:
    """All interfaces to a model. Each returns the leaves of a frame's rows, or REFUSED."""

    def __init__(self, classifier, model, client, folder, *, file=None) -> None:
        self.classifier = classifier
        self.model = model
        self.client = client
        self.folder = folder
        self._own_file = file

    def estimator(self, frame):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return self.classifier.apply(frame).tolist()
            except ValueError:
                return REFUSED

    def csv_file(self, frame):
        path = self.folder / "new.csv"
        path.write_text(csv_of(frame), encoding="utf-8")
        return self._file(path)

    def parquet_file(self, frame):
        path = self.folder / "new.parquet"
        parquet_of(frame, path)
        return self._file(path)

    def _file(self, path):
        out = io.StringIO()
        try:
            predict_file(self.file, path, out)
        except TrainerError:
            return REFUSED
        return leaves_of(out.getvalue())

    @property
    def file(self):
        return self._own_file or from_json(json.loads(self.model.document))

    def rows(self, frame):
        answer = self._post(f"/api/v1/models/{self.model.pk}/predict/", {"rows": records_of(frame)})
        return answer if answer == REFUSED else [p["leaf"] for p in answer["predictions"]]

    def columns(self, frame):
        records = records_of(frame)
        columns = {name: [row[name] for row in records] for name in records[0]}
        answer = self._post(f"/api/v1/models/{self.model.pk}/predict/", {"columns": columns})
        return answer if answer == REFUSED else answer["columns"]["leaf"]

    def tensors(self, frame):
        records = records_of(frame)
        inputs = [tensor(name, [row[name] for row in records]) for name in records[0]]
        answer = self._post(f"/v2/models/{self.model.family.name}/infer", {"inputs": inputs})
        return answer if answer == REFUSED else next(o["data"] for o in answer["outputs"] if o["name"] == "leaf")

    def tensors_in_base64(self, frame):
        records = records_of(frame)
        inputs = in_base64([tensor(name, [row[name] for row in records]) for name in records[0]])
        answer = self._post(f"/v2/models/{self.model.family.name}/infer", {"inputs": inputs})
        return answer if answer == REFUSED else next(o["data"] for o in answer["outputs"] if o["name"] == "leaf")

    def command_line(self, frame):
        parquet_of(frame, self.folder / "told.parquet")
        out = self.folder / "told.csv"
        words = ["predict", str(self.folder / "model.json"), str(self.folder / "told.parquet"), "--output", str(out)]
        handler = signal.getsignal(signal.SIGTERM)  # the command installs its own
        with contextlib.redirect_stderr(io.StringIO()):
            status = dispatch.main("octweb", words)
        signal.signal(signal.SIGTERM, handler)
        return leaves_of(out.read_text(encoding="utf-8")) if status == 0 else REFUSED

    def batch(self, frame):
        """Predict a CSV file as a job, in a child process of the worker."""
        file = SimpleUploadedFile("new.csv", csv_of(frame).encode())
        job = batches.enqueue(owner=self.model.owner, model=self.model, file=file, source_name="new.csv")
        if predict_batch.func(str(job.pk)) != RunStatus.SUCCEEDED:
            return REFUSED
        job.refresh_from_db()
        with job.result.open("rb") as stream:
            return leaves_of(stream.read().decode())

    def python_export(self, rows):
        scope: dict = {}
        exec(to_python(self.file.tree), scope)
        try:
            return [scope["leaf"](row) for row in rows]
        except (ValueError, TypeError):
            return REFUSED

    def sql_export(self, rows):
        types = ", ".join(f'"{c.name}" {"TEXT" if is_categorical(c) else "REAL"}' for c in self.file.tree.schema)
        with contextlib.closing(sqlite3.connect(":memory:")) as base:
            base.execute(f"CREATE TABLE t ({types})")
            base.executemany("INSERT INTO t VALUES (:c, :n)", rows)
            leaves = [row[0] for row in base.execute(f"SELECT {to_sql(self.file.tree, 'leaf')} FROM t ORDER BY rowid")]
        return REFUSED if None in leaves else leaves

    def onnx_export(self, rows):
        import onnxruntime

        tree = self.file.tree
        inputs = {}
        for j, name in input_names(tree).items():
            cells = [row[tree.schema[j].name] for row in rows]
            texts = ["(missing)" if cell is None else cell for cell in cells]
            numbers = [math.nan if cell is None else cell for cell in cells]
            inputs[name] = np.array(texts, object) if is_categorical(tree.schema[j]) else np.array(numbers, np.float64)
        session = onnxruntime.InferenceSession(to_onnx(tree, "columns"), providers=["CPUExecutionProvider"])
        return session.run(["leaf"], {name: cells.reshape(-1, 1) for name, cells in inputs.items()})[0].tolist()

    def pmml_export(self, rows):
        tree = PmmlTree(to_pmml(self.file.tree))
        leaves = [tree.leaf(row) for row in rows]
        return REFUSED if None in leaves else leaves

    def contract_cells(self, frame) -> list[dict]:
        """Return the rows as programs get them: categories in the spelling of the contract, and numbers as floats."""
        path = self.folder / "cells.parquet"
        parquet_of(frame, path)
        file = self.file
        schema = [replace(column, unknown=UnknownPolicy.WARN) for column in file.tree.schema]
        words = rows_for_model(read_table(path), schema, reading=ColumnParsing.from_json(file.reading))
        texts = records_of(frame)
        columns = {}
        for column in words.table.columns:
            names = column.schema.categories
            cells: list = [None if math.isnan(value) else value for value in column.values.tolist()]
            if is_categorical(column.schema):
                cells = [
                    str(row[column.name])
                    if code is not None and code < 0
                    else None
                    if code is None
                    else names[int(code)]
                    for code, row in zip(cells, texts, strict=True)
                ]
            columns[column.name] = cells
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def invocations(self, frame):
        records = records_of(frame)
        split = {"columns": list(records[0]), "data": [list(row.values()) for row in records]}
        answer = self._post("/invocations", {"dataframe_split": split, "params": {"output": "records"}})
        return answer if answer == REFUSED else [p["leaf"] for p in answer["predictions"]]

    def invocations_csv(self, frame):
        answer = self.client.post("/invocations", csv_of(frame), content_type="text/csv")
        if answer.status_code == 200:
            # CSV has no parameters, so labels are compared with those of the leaves
            return answer.json()["predictions"]
        assert 400 <= answer.status_code < 500, answer.content
        return REFUSED

    def csv_body(self, frame):
        return self._body(csv_of(frame), "text/csv")

    def arrow_body(self, frame):
        sink = io.BytesIO()
        parquet_of(frame, self.folder / "body.parquet")
        table = pq.read_table(self.folder / "body.parquet", columns=["c", "n"])
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        return self._body(sink.getvalue(), ARROW_STREAM)

    def _body(self, content, content_type):
        address = f"/api/v1/models/{self.model.pk}/predict/"
        answer = self.client.post(address, content, content_type=content_type, headers={"Accept": "text/csv"})
        if answer.status_code == 200:
            return [int(row["leaf"]) for row in csv.DictReader(io.StringIO(answer.content.decode()))]
        assert 400 <= answer.status_code < 500, answer.content
        return REFUSED

    def mlflow(self, frame):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return TreePredictor(self.file).predict(records_of(frame)).tolist()
            except TrainerError:
                return REFUSED

    def _post(self, address, body):
        answer = self.client.post(address, json.dumps(body), content_type="application/json")
        if answer.status_code == 200:
            return answer.json()
        assert 400 <= answer.status_code < 500, answer.content
        return REFUSED

    def answers(self, frame) -> dict[str, object]:
        """Return the leaves that each interface returns.

        Some return labels, which are replaced by the leaves of the CSV file if they equal its labels.
        """
        names = (
            "estimator", "csv_file", "parquet_file", "rows", "columns", "tensors", "tensors_in_base64", "invocations", "csv_body",
            "arrow_body", "command_line",
        )  # fmt: skip
        found = {name: getattr(self, name)(frame) for name in names}
        tree = self.file.tree
        cells = self.contract_cells(frame)
        if not any(
            row[tree.schema[j].name] is None and not tree.schema[j].answers_empty
            for row in cells
            for j in tree.used_columns
        ):
            # programs answer "no" for an empty cell that the model refuses, as the page on exports says
            found |= {name: getattr(self, name)(cells) for name in ("python_export", "sql_export", "pmml_export")}
            if not tree.unknown_refused:
                found["onnx_export"] = self.onnx_export(cells)
        for name in ("invocations_csv", "mlflow"):
            labels = getattr(self, name)(frame)
            if REFUSED not in (labels, found["csv_file"]):
                expected = self.file.class_values[tree.labels[found["csv_file"]]].tolist()
                labels = found["csv_file"] if labels == expected else labels
            found[name] = labels
        return found


def training_of(kind: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a frame with this kind of column, and classes that depend on it."""
    cells = cells_of(kind, 0)
    column = pd.Series(cells)
    frame = pd.DataFrame({"c": column.astype(DECLARED[kind]) if kind in DECLARED else column, "n": 0.5})
    return frame, np.array([{0: "a", 1: "b", 2: "a", 3: "c"}[CHOICES[kind].index(cell)] for cell in cells])


def fitted_on(kind: str, options: dict):
    return trainer.make_classifier("cart", depth=3, **options).fit(*training_of(kind))


def trained_on(kind: str, options: dict, owner, staff, client, folder) -> Doors:
    classifier = fitted_on(kind, options)
    classifier.save(folder / "model.json")
    document = read_model(folder / "model.json").to_json()
    model = actions.register(owner=owner, document=document, dataset=None, title="Frames")
    actions.ask_for_approval(model, by=owner)
    return Doors(classifier, actions.approve(model, by=staff, reason="Tested."), client, folder)
