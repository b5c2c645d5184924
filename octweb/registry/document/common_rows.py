"""Find the rows on which another version was trained, by number or by content."""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from django.utils.crypto import salted_hmac

from octweb.datasets.models import Dataset
from octweb.datasets.stored import first_rows, raw_columns
from octweb.registry.document.rows import DatasetRows, rows_of
from octweb.registry.models import TreeModel
from trainer.dtypes import BoolArray
from trainer.errors import DataError

DIGEST_BYTES = 8


def trained_before(model: TreeModel, rows: DatasetRows, before: TreeModel) -> BoolArray | None:
    """Return on which `rows` of `model` the version `before` was trained, bool (n,). None if that cannot be known.

    Rows of another data set are the same if all columns agree that both data sets have and neither ignores.
    """
    earlier = rows_of(before)
    if earlier is None or not earlier.same or model.dataset is None or before.dataset is None:
        return None
    numbers = earlier.numbers[earlier.training]
    if model.dataset_id == before.dataset_id:
        return np.isin(rows.numbers, numbers)
    try:
        columns = _common_columns(model.dataset, before.dataset)
        if not columns:
            return None
        then = _row_digests(before.dataset, columns)[numbers - 1]
        return np.isin(_row_digests(model.dataset, columns)[rows.numbers - 1], then)
    except DataError:
        return None


def _common_columns(first: Dataset, second: Dataset) -> list[str]:
    ignored = {c["name"] for dataset in (first, second) for c in dataset.columns if c["role"] == "ignored"}
    others, _ = first_rows(second, 1)
    return [name for name in first_rows(first, 1)[0] if name in others and name not in ignored]


def _row_digests(dataset: Dataset, columns: Sequence[str]) -> np.ndarray:
    """Return a digest of each stored row under a key of this server, int64 (n,)."""
    key = salted_hmac("octweb.registry.common_rows", "row", algorithm="sha256").digest()
    cells = [_cell_digests(column, key) for column in raw_columns(dataset, columns).columns]
    table = np.ascontiguousarray(np.stack(cells, axis=1))
    return np.frombuffer(b"".join(_digest(row.tobytes(), key) for row in table), np.int64)


def _cell_digests(column: pa.Array, key: bytes) -> np.ndarray:
    """Return a digest of each cell, int64 (n,). Numbers are equal however they are written, and all empty cells are."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = np.asarray(coded.indices.fill_null(len(coded.dictionary)))
    texts = [*(_plain_text(value) for value in coded.dictionary.to_pylist()), ""]
    digests = b"".join(_digest(text.encode("utf-8", "surrogatepass"), key) for text in texts)
    return np.frombuffer(digests, np.int64)[codes]


def _plain_text(value: Any) -> str:
    text = "" if value is None else str(value).strip()
    try:
        number = float(text)
    except ValueError:
        return text
    return repr(number + 0.0) if math.isfinite(number) else text


def _digest(content: bytes, key: bytes) -> bytes:
    return blake2b(content, key=key, digest_size=DIGEST_BYTES).digest()
