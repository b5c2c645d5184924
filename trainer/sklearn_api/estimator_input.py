"""Read X, y, costs and groups of estimators from arrays and data frames."""

from __future__ import annotations

import unicodedata
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pyarrow as pa
from scipy.sparse import issparse
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_array,
    check_consistent_length,
    column_or_1d,
)
from sklearn.utils.validation import validate_data as sklearn_validate

from trainer.data.formats.frame import raw_rows
from trainer.data.formats.parquet_file import declared_order
from trainer.data.odd_words import OddWords, add_words
from trainer.data.parsing import ColumnParsing
from trainer.data.parsing.alike import Spellings
from trainer.data.parsing.cells import LARGEST_EXACT, MARKS, Cells
from trainer.data.parsing.infer import number_texts, stray_words
from trainer.data.reader import rows_for_model
from trainer.data.rows import UNKNOWN_CODE, is_blank_word, numbers_of_texts
from trainer.dtypes import FloatArray
from trainer.errors import list_names
from trainer.prediction.form_report import report_forms, unknown_cells_words, warning_sentences
from trainer.table import (
    MISSING_CATEGORY,
    Column,
    ColumnKind,
    ColumnSchema,
    MissingPolicy,
    RowGroups,
    Table,
    UnknownPolicy,
    narrow,
    number_kind,
    numeric_table,
)
from trainer.tree.nodes import Tree

NUMBERS = (int, float, np.integer, np.floating, Decimal, Fraction)
ODD = (complex, np.complexfloating, bytes, list, tuple, set, frozenset, dict, np.ndarray)
TEXT_TYPES = (nw.String, nw.Object, nw.Categorical, nw.Enum)
PLAIN = (str, bool, np.bool_, *NUMBERS)  # types of cells that a column of Python objects may hold
TOO_PRECISE = "decimals that differ in more digits than a double has. Make the column text, or round its values."
TOO_LARGE = "whole numbers beyond 2^53, which a double cannot tell apart. Make the column text, or divide its values."


def read_table(estimator: Any, X: Any, y: Any) -> tuple[Table, np.ndarray]:
    """Return the training table and the labels, shape (n,).

    Set `n_features_in_` and `feature_names_in_` of the estimator. Text columns need a data frame and become categorical.
    Boolean and 0/1 columns become binary, other numbers numeric. NaN and the missing values of the frame libraries are
    empty cells, which the splits learn.

    Raises
    ------
    ValueError
        If a number is infinite.
    """
    frame = _frame(X)
    _refuse_missing_labels(y)
    y = typed_labels(y)
    if frame is None:
        X = _without_sparsity(X)
        _refuse_large(X)
        X, y = sklearn_validate(estimator, X, y, dtype=_kept_dtype(X), ensure_all_finite="allow-nan")
        return numeric_table(X), y
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    y = check_array(column_or_1d(y, warn=True), ensure_2d=False, dtype=None)
    check_consistent_length(frame, y)
    _check_names(estimator, X, frame, reset=True)
    if not frame.columns:
        raise ValueError(f"0 feature(s) (shape=({len(frame)}, 0)) while a minimum of 1 is required.")
    columns = tuple(_fit_column(str(series.name), _dense(series)) for series in frame.iter_columns())
    return Table(columns=columns, row_numbers=np.arange(1, len(frame) + 1)), y


def _without_sparsity(X: Any) -> Any:
    """Return a sparse matrix as an array, since the searches read whole columns, and anything else unchanged."""
    return X.toarray() if issparse(X) else X


def _kept_dtype(X: Any) -> type[np.float64] | None:
    """Return None for an array of numbers, which columns are read from one by one; a float64 copy could be eight times as large.

    Long doubles are converted, because a finite one may be infinite as float64.
    """
    small = isinstance(X, np.ndarray) and X.dtype.itemsize <= np.dtype(np.float64).itemsize
    return None if small and X.dtype.kind in "biuf" else np.float64


class InputRows(NamedTuple):
    """Rows to predict, their unknown categories, and words that a column does not take as they are."""

    matrix: FloatArray  # (n, p), of any numeric type
    unknown: dict[str, Counter[str]]  # for each column, the number of cells with each unknown category
    odd: OddWords


def read_rows(estimator: Any, X: Any, schema: tuple[ColumnSchema, ...]) -> InputRows:
    """Read X under the schema of a model.

    An unknown category becomes `UNKNOWN_CODE`, which goes right. It raises ValueError under the policy 'refuse'.
    A model of a file with dates, units or spellings reads a data frame like that file.
    """
    frame = _frame(X)
    reading = ColumnParsing.from_json(getattr(getattr(estimator, "_fitted", None), "reading", None))
    if frame is not None and any(column.special for column in reading.columns.values()):
        return _read_like_file(estimator, X, schema, reading)
    if frame is None:
        if any(column.kind is ColumnKind.CATEGORICAL for column in schema):
            raise ValueError(
                "The model was trained on a data frame with text columns, so it cannot read this input. Give a data frame."
            )
        X = _without_sparsity(X)
        _refuse_large(X)
        return InputRows(
            sklearn_validate(estimator, X, dtype=_kept_dtype(X), reset=False, ensure_all_finite="allow-nan"),
            {},
            OddWords(),
        )
    _check_names(estimator, X, frame, reset=False)
    if len(frame) == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape=(0, {len(schema)})) while a minimum of 1 is required.")
    matrix = np.empty((len(frame), len(schema)), order="F")
    unknown: dict[str, Counter[str]] = {}
    odd = OddWords()
    asked = set(estimator.tree_.used_columns)
    for j, (input_column, column) in enumerate(zip(frame.iter_columns(), schema, strict=True)):
        policy = policy_of(estimator, column)
        try:
            matrix[:, j], unknown_words = _read_column(column, _dense(input_column), policy)
        except ValueError:
            if j in asked:
                raise
            matrix[:, j] = np.nan  # the tree does not ask this column
            add_words(odd.unfit, column.name, _unfit_words(column, _dense(input_column)))
            continue
        if j not in asked:
            continue
        add_words(odd.blank, column.name, _blank_words(column, _dense(input_column)))
        if unknown_words:
            unknown[column.name] = unknown_words
    return InputRows(matrix, unknown, odd)


def _read_column(column: ColumnSchema, series: nw.Series, policy: UnknownPolicy) -> tuple[FloatArray, Counter[str]]:
    """Return the values of a column and its unknown words; raise ValueError for cells that do not fit."""
    if column.kind is not ColumnKind.CATEGORICAL:
        return _numbers(column.name, series), Counter()
    texts = _texts(series)
    codes, strange = _codes(column, texts)
    unknown_words = Counter(text for text in texts if text is not None and text in strange)
    if unknown_words and policy is UnknownPolicy.REFUSE:
        words = unknown_cells_words(column.name, unknown_words, len(texts))
        raise ValueError(f"{words} Correct the cells, or choose unknown='warn'.")
    return codes, unknown_words


def _blank_words(column: ColumnSchema, series: nw.Series) -> dict[str, int]:
    """Return the words of a column of numbers that are read as empty cells, such as "-"."""
    if column.kind is ColumnKind.CATEGORICAL or series.dtype not in TEXT_TYPES:
        return {}
    words = Counter(cell.strip() for cell in series.to_list() if isinstance(cell, str))
    numbers = numbers_of_texts(words)
    return {word: n for word, n in words.items() if is_blank_word(word, numbers)}


def _unfit_words(column: ColumnSchema, series: nw.Series) -> Counter[str]:
    """Return the words of a column that the tree does not ask, which an asked column would refuse."""
    cells = [cell for cell in series.to_list() if not _is_missing(cell)]
    if column.kind is ColumnKind.CATEGORICAL:
        strange = _codes(column, [str(cell) for cell in cells])[1]
        return Counter(str(cell) for cell in cells if str(cell) in strange or not isinstance(cell, PLAIN))
    numbers = numbers_of_texts({cell.strip() for cell in cells if isinstance(cell, str)})
    return Counter(str(cell) for cell in cells if not _is_number(cell, numbers))


def _is_number(cell: Any, numbers: Mapping[str, float]) -> bool:
    if isinstance(cell, str):
        return cell.strip() in numbers
    if isinstance(cell, (int, np.integer)):
        return abs(int(cell)) <= LARGEST_EXACT
    return isinstance(cell, NUMBERS) and bool(np.isfinite(float(cell)))


def _read_like_file(estimator: Any, X: Any, schema: tuple[ColumnSchema, ...], reading: ColumnParsing) -> InputRows:
    """Read a data frame with the parsing of the training file. Columns that the tree does not ask may be absent."""
    raw, _ = raw_rows(X)
    # a frame may have the columns that dates became instead of the dates
    sources = {name: own for name, own in reading.columns.items() if name in raw.names or own.date is None}
    reading = replace(reading, columns=sources)
    columns = [replace(column, unknown=policy_of(estimator, column)) for column in schema]
    rows = rows_for_model(raw, columns, used=estimator.tree_.used_columns, reading=reading)
    unknown = {name: Counter(words) for name, words in rows.unknown_words.items()}
    return InputRows(rows.table.matrix(), unknown, rows.odd)


def policy_of(estimator: Any, column: ColumnSchema) -> UnknownPolicy:
    """Return the policy of an estimator for categories of a column that training did not have."""
    chosen = getattr(estimator, "unknown", column.unknown)
    is_as_loaded = chosen == getattr(estimator, "_loaded_unknown", None)
    return column.unknown if is_as_loaded else unknown_policy(chosen)


def warn_of_changed_forms(estimator: Any, X: Any, rows: InputRows, tree: Tree) -> None:
    """Warn once about each column with unknown categories, or with numbers that look like another unit."""
    report = report_forms(tree, rows.matrix, rows.unknown, lambda schema: read_rows(estimator, X, schema).matrix)
    schema = [replace(column, unknown=policy_of(estimator, column)) for column in tree.schema]
    for sentence in (*warning_sentences(tree, schema, rows.matrix, rows.unknown, report), *rows.odd.notes):
        warnings.warn(sentence, UserWarning, stacklevel=4)


def read_row_costs(costs: Any, y: np.ndarray) -> FloatArray:
    """Return the cost of each answer in each row, float64 (n, classes), with the answers in the order of the sorted labels.

    Raises
    ------
    ValueError
        If the array does not have one number for each row and class, or if a number is negative, infinite or NaN.
    """
    classes = np.unique(y).tolist()
    try:
        values = np.array(costs, np.float64)
    except (TypeError, ValueError):
        raise ValueError("costs must be an array of numbers, one row for each row of X.") from None
    if values.shape != (len(y), len(classes)):
        raise ValueError(
            f"costs has the shape {values.shape}, but needs ({len(y)}, {len(classes)}): a row for each row of X, "
            f"and a column for each of {list_names([str(label) for label in classes])}, in this order."
        )
    usable = np.isfinite(values) & (values >= 0)
    if not usable.all():
        row, place = np.argwhere(~usable)[0]
        raise ValueError(
            f"costs has {values[row, place]:g} in row {row}, column {place}. Costs must be finite and not negative. "
            "Adding the same number to all costs of a row changes no tree."
        )
    return values


def read_groups(groups: Any, n: int) -> RowGroups:
    """Return the group of each of `n` rows; raises ValueError unless there is one value per row.

    A missing value is a group of its own.
    """
    series = nw.from_native(groups, series_only=True, pass_through=True)
    values = series.to_list() if isinstance(series, nw.Series) else np.asarray(groups, dtype=object).tolist()
    if not isinstance(values, list) or len(values) != n or any(isinstance(value, list) for value in values):
        shape = len(values) if isinstance(values, list) else 1
        raise ValueError(f"groups has {shape} values for {n} rows. Give one value for each row.")
    code: dict[Any, int] = {}
    codes = np.array(
        [n + i if _is_missing(v) else code.setdefault(v, len(code)) for i, v in enumerate(values)], np.int64
    )
    return RowGroups(column=str(getattr(groups, "name", None) or "groups"), codes=codes, empty=int((codes >= n).sum()))


def _codes(column: ColumnSchema, texts: list[str | None]) -> tuple[FloatArray, set[str]]:
    """Return the codes of a categorical column and its unknown words.

    Empty cells are NaN, or the code of the category for them; unknown words are `UNKNOWN_CODE`. A blank text or a word such as 'NA' is an empty cell,
    unless the model knows it as a category.
    """
    missing = np.nan if column.missing_code is None else float(column.missing_code)
    code: dict[str | None, float] = {category: float(c) for c, category in enumerate(column.categories)}
    code[None] = missing
    unknown = set()
    spellings = Spellings(column.categories)
    for text in dict.fromkeys(texts):
        if text is None or text in code:
            continue
        if text.strip() in ("", *MARKS):
            code[text] = missing
            continue
        place = spellings.code(text)
        if place is None or place == column.missing_code:
            code[text] = UNKNOWN_CODE
            unknown.add(text)
        else:
            code[text] = float(place)
    return np.array([code[text] for text in texts], np.float64), unknown


def _refuse_large(X: Any) -> None:
    """Raise ValueError if the array has integers that a double would round."""
    if not isinstance(X, (np.ndarray, list, tuple)):
        return  # scikit-learn reports an error for anything else that cannot be trained on
    try:
        # read lists as objects, because NumPy would round the integers of a list that also has floats
        values = np.asarray(X) if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    except ValueError:  # the rows differ in length
        return
    if values.dtype.kind not in "iuO" or values.ndim != 2 or not values.size:
        return
    if values.dtype == object:
        large = [any(isinstance(v, int) and abs(v) > LARGEST_EXACT for v in column.tolist()) for column in values.T]
    elif values.dtype.itemsize < np.dtype(np.float64).itemsize:
        return
    else:
        large = ((values.min(axis=0) < -LARGEST_EXACT) | (values.max(axis=0) > LARGEST_EXACT)).tolist()
    if True in large:
        raise ValueError(f"Column {large.index(True)} has {TOO_LARGE}")


def _refuse_missing_labels(y: Any) -> None:
    """Raise ValueError if a label is missing or the labels mix types that cannot be compared."""
    if y is None:
        return
    series = nw.from_native(y, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        cells: Any = series.to_list()
    else:
        cells = list(y) if isinstance(y, (list, tuple)) else np.asarray(y)
    if isinstance(cells, np.ndarray) and (cells.dtype != object or cells.ndim != 1):
        return  # scikit-learn checks arrays of numbers
    missing_row = next((i for i, cell in enumerate(cells) if _is_missing(cell)), None)
    if missing_row is not None:
        raise ValueError(
            f"Input y contains NaN or None: row {missing_row} has no label. Drop such rows before training."
        )
    kinds = {type(cell) for cell in cells if isinstance(cell, (str, int, float, bool))}
    if str in kinds and len(kinds) > 1:
        raise ValueError(
            "The labels in y are partly text and partly numbers. Make all of them text, or all of them numbers."
        )
    if bool in {bool if isinstance(cell, np.bool_) else type(cell) for cell in cells} and len(kinds - {bool}):
        raise ValueError(
            "The labels in y are partly true and false and partly numbers. Make all of them true and false, or all numbers."
        )


def typed_labels(y: Any) -> Any:
    """Return labels that are all boolean, or all integers, as an array of this type; others unchanged.

    scikit-learn would turn nullable types of pandas into floats, and refuse objects.
    """
    native = y.iloc[:, 0] if getattr(y, "ndim", 1) == 2 and hasattr(y, "iloc") and y.shape[1] == 1 else y
    series = nw.from_native(native, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        cells = series.to_list()
    elif getattr(y, "ndim", 0) == 1 and (not isinstance(y, np.ndarray) or y.dtype == object):
        cells = list(y)  # an object array, or a pandas array with a type of its own
    else:
        return y
    is_bool = [isinstance(cell, (bool, np.bool_)) for cell in cells]
    is_integer = [isinstance(cell, (int, np.integer)) and not isinstance(cell, bool) for cell in cells]
    return np.array(cells) if cells and (all(is_bool) or all(is_integer)) else y


def _is_missing(cell: Any) -> bool:
    """Return whether a cell is None, NaN or a missing value of a frame library; False for an array."""
    if cell is None:
        return True
    if np.ndim(cell):
        return False
    try:
        return bool(cell != cell)
    except TypeError:  # pandas' NA has no truth value
        return True


def _frame(X: Any) -> nw.DataFrame | None:
    """Return X as a narwhals frame, or None if it is not a data frame."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _check_names(estimator: Any, X: Any, frame: nw.DataFrame, *, reset: bool) -> None:
    # scikit-learn compares the column names of pandas and polars frames; those of pyarrow tables are compared below
    _check_feature_names(estimator, X, reset=reset)
    if reset:
        if not hasattr(estimator, "feature_names_in_") and all(isinstance(name, str) for name in frame.columns):
            estimator.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        estimator.n_features_in_ = len(frame.columns)
        return
    fitted_names = getattr(estimator, "feature_names_in_", None)
    if fitted_names is not None and list(fitted_names) != list(frame.columns):
        raise ValueError(
            "The feature names should match those that were passed during fit, in the same order: "
            + ", ".join(str(name) for name in fitted_names)
        )
    _check_n_features(estimator, np.empty((1, len(frame.columns))), reset=False)


def _dense(series: nw.Series) -> nw.Series:
    """Return the column with sparse values of pandas decompressed, and long doubles as doubles."""
    native = series.to_native()
    if type(getattr(native, "dtype", None)).__name__ == "SparseDtype":
        native = native.sparse.to_dense()
    dtype = getattr(native, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize > np.dtype(np.float64).itemsize:
        values = native.to_numpy()
        if len(np.unique(values.astype(np.float64))) < len(np.unique(values)):
            raise ValueError(f"Column '{series.name}' has {TOO_PRECISE}")
        native = native.astype(np.float64)
    return series if native is series.to_native() else nw.from_native(native, series_only=True)


def _fit_column(name: str, series: nw.Series) -> Column:
    if series.dtype.is_numeric() or series.dtype == nw.Boolean or _holds_numbers(series):
        cells = narrow(_numbers(name, series))
        return Column(schema=ColumnSchema(name=name, kind=number_kind(cells), missing=MissingPolicy.LEARN), cells=cells)
    if series.dtype.is_temporal() or series.dtype.is_nested():
        raise ValueError(f"Column '{name}' holds {series.dtype}. Turn it into a number or a text before training.")
    texts = _texts(series)
    if series.dtype in (nw.Object, nw.String):
        _warn_of_number_texts(name, texts)
    categories = sorted({text for text in texts if text is not None})
    order = _declared_order(series)
    ordered = bool(order) and set(categories) <= set(order)
    if ordered:
        categories = [text for text in order if text in set(categories)]
    if any(text is None for text in texts):
        if MISSING_CATEGORY in categories:
            raise ValueError(
                f"Column '{name}' has the text '{MISSING_CATEGORY}' and empty cells, which would become one category. Replace this text."
            )
        categories = [*categories, MISSING_CATEGORY]
    code = {category: float(c) for c, category in enumerate(categories)}
    values = np.array([code[MISSING_CATEGORY if text is None else text] for text in texts], np.float64)
    schema = ColumnSchema(
        name=name,
        kind=ColumnKind.CATEGORICAL,
        categories=tuple(categories),
        missing=MissingPolicy.LEARN,
        ordered=ordered,
    )
    return Column(schema=schema, cells=narrow(values))


def _declared_order(series: nw.Series) -> Sequence[str]:
    """Return the texts of ordered categories of pandas, polars or Arrow in their order; empty for other columns."""
    native = series.to_native()
    if isinstance(native, pa.ChunkedArray):
        return declared_order(native)
    dtype: Any = getattr(native, "dtype", None)
    if getattr(dtype, "ordered", False):  # a pandas column
        return [str(category) for category in dtype.categories]
    return [str(category) for category in series.dtype.categories] if isinstance(series.dtype, nw.Enum) else ()


def _warn_of_number_texts(name: str, texts: list[str | None]) -> None:
    """Warn once about a column whose numbers become categories because they are texts, or because it also has
    a few words.
    """
    cells = Cells.of(pa.array(texts, pa.string()))
    if (stray := stray_words(cells)) is not None:
        words = f"{stray.figure}, so each value is a category. Make the words empty cells (None) and the column numbers"
    elif distinct := number_texts(Cells.of(pa.array([_with_ascii_digits(text) for text in texts], pa.string()))):
        words = f"its {distinct:,} different texts are numbers, and each is a category. Make the column numbers"
    else:
        return
    words = f"Column '{name}': {words}, or make all of it text on purpose, as a Categorical."
    warnings.warn(words, UserWarning, stacklevel=5)


def _with_ascii_digits(text: str | None) -> str | None:
    """Return the text with the digits of other alphabets written as 0 to 9."""
    if text is None or text.isascii():
        return text
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)


def _holds_numbers(series: nw.Series) -> bool:
    """Return whether all filled cells of a column of Python objects are numbers.

    Such a column is numeric: 1 and 1.0 are one value, and 9 lies below 10. A blank text or a word such as 'NA' among
    numbers is an empty cell, as in a file.
    """
    if series.dtype != nw.Object:
        return False
    kinds = {
        type(cell)
        for cell in series.to_list()
        if not (_is_missing(cell) or (isinstance(cell, str) and cell.strip() in ("", *MARKS)))
    }
    return bool(kinds) and all(issubclass(kind, NUMBERS) and not issubclass(kind, (bool, np.bool_)) for kind in kinds)


def _numbers_of_objects(name: str, series: nw.Series) -> FloatArray:
    """Return a column that `_holds_numbers` as float64, NaN where a cell is missing."""
    cells = [None if _is_missing(cell) or isinstance(cell, str) else cell for cell in series.to_list()]
    if any(isinstance(cell, (int, np.integer)) and abs(int(cell)) > LARGEST_EXACT for cell in cells):
        raise ValueError(f"Column '{name}' has {TOO_LARGE}")
    fine = {cell for cell in cells if isinstance(cell, (Decimal, Fraction))}
    if len({float(cell) for cell in fine}) < len(fine):
        raise ValueError(f"Column '{name}' has {TOO_PRECISE}")
    return np.array([np.nan if cell is None else float(cell) for cell in cells], np.float64)


def _numbers_of_texts(series: nw.Series) -> FloatArray | None:
    """Return a column of texts as float64, parsed as in a file; None if it has no text.

    Raise ValueError with the first text that is not a number.
    """
    if series.dtype not in TEXT_TYPES:
        return None
    cells = [None if _is_missing(cell) else cell for cell in series.to_list()]
    texts = {cell.strip() for cell in cells if isinstance(cell, str)}
    if not texts:
        return None
    numbers = numbers_of_texts(texts)
    values = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells):
        if cell is None:
            continue
        number = numbers.get(cell.strip()) if isinstance(cell, str) else cell
        if number is None:
            raise ValueError(repr(cell[:40]))
        values[i] = float(number)
    return values


def _numbers(name: str, series: nw.Series) -> FloatArray:
    """Return the column as float64, NaN where a cell is empty; raise ValueError for infinite numbers."""
    if series.dtype.is_integer():
        # use Python's integers, since the absolute value of the smallest 64-bit integer overflows
        ends = [int(end) for end in (series.min(), series.max()) if end is not None]
        if any(abs(end) > LARGEST_EXACT for end in ends):
            raise ValueError(f"Column '{name}' has {TOO_LARGE}")
    if series.dtype == nw.Decimal:
        decimals = {cell for cell in series.to_list() if not _is_missing(cell)}
        if len({float(cell) for cell in decimals}) < len(decimals):
            raise ValueError(f"Column '{name}' has {TOO_PRECISE}")
    objects = _numbers_of_objects(name, series) if _holds_numbers(series) else None
    try:
        objects = _numbers_of_texts(series) if objects is None else objects
        values = series.cast(nw.Float64).to_numpy().astype(np.float64) if objects is None else objects
    except Exception as error:  # each frame library raises its own exceptions
        raise ValueError(
            f"Column '{name}' was numeric in training and now contains something else: {error}. Give numbers, or empty cells."
        ) from error
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise ValueError(f"Input X contains infinity: column '{name}', row {row}. Replace it by a finite number.")
    return values


def _texts(series: nw.Series) -> list[str | None]:
    """Return the cells as text, None if empty; raise ValueError if cells of different types have the same text."""
    missing = series.is_null().to_list()
    cells = series.to_list()
    kind = str(series.dtype)
    if kind in ("Object", "Categorical", "Enum", "Unknown", "Binary"):
        present = [cell for is_null, cell in zip(missing, cells, strict=True) if not (is_null or _is_missing(cell))]
        # declared categories may be of any type, such as the intervals of pandas' cut
        declared = kind in ("Categorical", "Enum")
        odd = next((c for c in present if isinstance(c, ODD) or not (declared or isinstance(c, PLAIN))), None)
        if odd is not None:
            raise ValueError(
                f"Column '{series.name}' holds {type(odd).__name__}. Turn it into a number or a text before training."
            )
        types: dict[str, type] = {}
        for is_null, cell in zip(missing, cells, strict=True):
            if not (is_null or _is_missing(cell)) and types.setdefault(str(cell), type(cell)) is not type(cell):
                raise ValueError(
                    f"Column '{series.name}' has '{cell}' as text and as a number, which would become one category. "
                    "Make the whole column text, or numbers."
                )
    return [None if is_null or _is_missing(cell) else str(cell) for is_null, cell in zip(missing, cells, strict=True)]


MISSING_ALLOWED = "one of learn, drop, refuse, or a dictionary from columns to these"
MISSING_HELP = (
    "How to handle empty cells. 'learn': splits learn where they go. 'drop': their rows are left out of the training and get no prediction. "
    "'refuse': they are an error. Columns that a dictionary does not name learn."
)


RAISE = "raise"  # scikit-learn's word for 'refuse'
UNKNOWN_ALLOWED = "branch, warn, refuse or raise"
UNKNOWN_HELP = (
    "How `predict` handles a category that training did not have. 'warn': it warns once per column and answers every question about the "
    "category with no. 'branch': the same without the warning. 'refuse' or 'raise': it raises an error. Another spelling of a known category "
    "is not unknown. The saved model keeps the choice."
)


def unknown_policy(value: Any) -> UnknownPolicy:
    """Return the policy that the parameter `unknown` names; raises ValueError."""
    if value == RAISE:
        return UnknownPolicy.REFUSE
    try:
        return UnknownPolicy(value)
    except ValueError as error:
        raise ValueError(f"unknown: '{str(value)[:40]}' is not one of {UNKNOWN_ALLOWED}.") from error


def apply_policy(table: Table, policy: Any) -> tuple[Table, np.ndarray]:
    """Apply the parameter `missing`: return the training rows and their mask, bool (n,).

    Raises
    ------
    ValueError
        If a policy or column is unknown, a refused cell is empty, or no row is left.
    """
    names = dict.fromkeys(table.names)
    by_column = policy if isinstance(policy, Mapping) else dict.fromkeys(names, policy)
    if unknown := [str(name) for name in by_column if str(name) not in names]:
        raise ValueError(f"missing: there is no column '{unknown[0]}'. The columns are: {list_names(list(names))}.")
    policies = {str(name): str(word) for name, word in by_column.items()}
    if wrong := [word for word in policies.values() if word not in ("learn", "drop", "refuse")]:
        raise ValueError(f"missing: '{wrong[0][:40]}' is not {MISSING_ALLOWED}.")
    training_rows = np.ones(len(table), bool)
    columns = []
    for column in table.columns:
        column_policy = MissingPolicy(policies.get(column.name, "learn"))
        if column_policy is MissingPolicy.LEARN:
            columns.append(column)
            continue
        code = column.schema.missing_code
        empty = column.missing if code is None else column.values == code
        if column_policy is MissingPolicy.REFUSE and empty.any():
            raise ValueError(
                f"Input X contains NaN: column '{column.name}', row {int(empty.argmax())}, and 'missing' is 'refuse'. Fill the cell, or choose missing='learn'."
            )
        training_rows &= ~empty
        categories = tuple(c for c in column.schema.categories if code is None or c != MISSING_CATEGORY)
        columns.append(replace(column, schema=replace(column.schema, missing=column_policy, categories=categories)))
    if not training_rows.any():
        raise ValueError(
            "Every row has an empty cell in a column whose rows are dropped, so none is left to train on. Fill cells, or choose missing='learn'."
        )
    training_table = replace(table, columns=tuple(columns))
    return training_table if training_rows.all() else training_table.take(training_rows), training_rows


def refuse_empty(matrix: FloatArray, tree: Tree) -> None:
    """Raise ValueError if a cell is empty in a column whose empty cells the tree refuses."""
    for j in tree.refused_columns:
        empty = np.isnan(matrix[:, j])
        if empty.any():
            raise ValueError(
                f"Input X contains NaN: column '{tree.schema[j].name}', row {int(empty.argmax())}. The model gives no answer for empty cells there. Fill the cell."
            )
