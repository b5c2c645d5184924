"""Report possible faults of a file, a frame or arrays."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from trainer.data.build import LoadReport, check_name
from trainer.data.empty_report import EmptyReport, empty_report, is_empty
from trainer.data.formats.frame import arrow_cells, frame_column, raw_rows
from trainer.data.formats.raw import RawTable
from trainer.data.formats.read_file import read_table
from trainer.data.inspection import InspectedTable, IntakeFinding, findings_of
from trainer.data.parsing import ColumnParsing, ParsingChoices, reading_of
from trainer.data.parsing.cells import Cells
from trainer.data.parsing.infer import infer, number_texts
from trainer.data.profile import profile
from trainer.data.reader import build_as_read
from trainer.errors import DataError, UnknownColumnError
from trainer.table import ColumnKind, Labels, MissingPolicy, Table

TARGET = "target"
Built = tuple[Table, Labels, LoadReport]


def inspect(X: Any, y: Any = None, *, target: str = "", header: bool | None = None) -> tuple[IntakeFinding, ...]:
    """Inspect a table and report possible faults, the worst first.

    Parameters
    ----------
    X : str, Path, data frame, or array of shape (n, p)
        A CSV or Parquet file, or rows. A file or a frame may hold the target.
    y : sequence of shape (n,), optional
        The classes, if X does not hold them.
    target : str
        The column of X to predict, or the name of y.
    header : bool, optional
        False if the first line of a CSV file is a row; its columns are then called `column 1`, `column 2` and so on.

    Returns
    -------
    tuple of IntakeFinding
        The findings; empty if there are none.

    Raises
    ------
    DataError
        If X has no column `target`, or if neither y nor `target` is given.
    """
    if y is None and not target:
        raise DataError("inspect needs the classes: give y, or the name of the target column as target=...")
    texts: list[IntakeFinding] = []
    if isinstance(X, (str, Path)):
        raw = read_table(X, header=header)
        categorical: list[str] = []
    else:
        raw, categorical = raw_rows(X)
        texts = list(_number_texts(raw, {*categorical, target}))
    if y is not None:
        target = target or str(getattr(y, "name", None) or TARGET)
        raw = _with_target(raw, y, target)
    kinds = {name: ColumnKind.CATEGORICAL for name in categorical if name != target}
    choices = ParsingChoices(header=None if header is not False else False)
    return (*texts, *inspect_raw(raw, reading_of(raw, choices), target=target, kinds=kinds))


def _number_texts(raw: RawTable, but: Collection[str]) -> Iterator[IntakeFinding]:
    """Yield a finding for each text column of a frame that would be numeric in a file."""
    for name, column in zip(raw.names, raw.columns, strict=True):
        if name in but or not pa.types.is_string(column.type) or not (distinct := number_texts(Cells.of(column))):
            continue
        yield IntakeFinding(
            kind="number_texts",
            column=name,
            severity="high",
            figure=f"{distinct:,} different texts, all of them numbers",
            sentence="The column holds numbers as texts. An estimator takes each text of a data frame for a category.",
            if_nothing="A tree cannot ask whether the number is large, and a new number is unknown. The rest of this report treats it as numeric.",
        )


def inspect_raw(
    raw: RawTable,
    reading: ColumnParsing,
    *,
    target: str,
    ignore: Collection[str] = (),
    posted_kinds: Mapping[str, ColumnKind] | None = None,
    **options: Any,
) -> tuple[IntakeFinding, ...]:
    """Return the intake report of rows; see `build_as_read` for `ignore` and the other options.

    `posted_kinds` is as for `inspect_built`.

    If no tree can be trained on the table, a finding states the reason, and the other findings are about its cells
    only. Raise UnknownColumnError for a column that `raw` does not have.
    """
    check_name(target, raw.names)
    built: Built | None = None
    not_trainable: list[IntakeFinding] = []
    try:
        built = build_as_read(raw, reading, target=target, ignore=ignore, **options)
    except UnknownColumnError:
        raise
    except DataError as error:
        not_trainable = [_not_trainable(error)]
    report = None
    if built is not None and has_empty(built):
        learn = dict.fromkeys(built[0].names, MissingPolicy.LEARN)
        learned = build_as_read(raw, reading, target=target, ignore=ignore, **{**options, "missing": learn})
        report = empty_report(learned[0], learned[1])
    chosen_names = {*(options.get("kinds") or {}), *(options.get("missing") or {}), *(options.get("special") or {})}
    findings = inspect_built(
        raw, reading, target, built, report, ignored=ignore, named=chosen_names, posted_kinds=posted_kinds
    )
    return (*not_trainable, *findings)


def _not_trainable(error: DataError) -> IntakeFinding:
    return IntakeFinding(
        kind="not_trainable",
        column="",
        severity="high",
        figure=str(error),
        sentence="No tree can be trained on this table. Checks of the whole table were skipped.",
        if_nothing="The training is refused with this reason.",
    )


def inspect_built(
    raw: RawTable,
    reading: ColumnParsing,
    target: str,
    built: Built | None,
    empty: EmptyReport | None,
    *,
    ignored: Collection[str],
    named: Collection[str],
    posted_kinds: Mapping[str, ColumnKind] | None = None,
) -> tuple[IntakeFinding, ...]:
    """Return the intake report of rows with their built table; `built` is None if the table cannot be built.

    A form posts the kind of every column. In `posted_kinds`, a guessed kind is not a choice of the user.
    """
    target_reading = reading.for_target(target)
    texts = [column.name for column in built[0].schema if column.kind is ColumnKind.CATEGORICAL] if built else []
    plain = target_reading.without(texts).apply(raw, target=target, needed=())
    derived = set(plain.names) - set(raw.names)
    # a column that needs parsing may have been parsed in another way for `built`
    known = {name: own for name, own in built[2].guesses.items() if name not in target_reading.columns} if built else {}
    guesses = infer(plain, known)
    unchanged = {
        guess.name
        for guess in guesses
        if not guess.identifier and (posted_kinds or {}).get(guess.name) is guess.schema.kind
    }
    return findings_of(
        InspectedTable(
            raw=plain,
            unparsed=raw,
            target=target,
            reading=target_reading,
            guesses=[replace(g, identifier=False) if g.name in derived else g for g in guesses],
            built=built,
            profile=None if built is None else profile(built[0], built[1]),
            empty=empty,
            ignored=ignored,
            named=set(named) - unchanged,
        )
    )


def has_empty(built: Built) -> bool:
    """Return whether a cell of the built table is empty, or a row was dropped for one."""
    return bool(built[2].rows_dropped) or any(is_empty(column).any() for column in built[0].columns)


def _with_target(raw: RawTable, y: Any, target: str) -> RawTable:
    import narwhals as nw

    series = nw.from_native(y, series_only=True, pass_through=True)
    classes = frame_column(series) if isinstance(series, nw.Series) else arrow_cells(np.asarray(y))
    if len(classes) != len(raw):
        raise DataError(f"X has {len(raw):,} rows, but y has {len(classes):,} classes. Give one class for each row.")
    if target in raw.names:
        raise DataError(f"X has a column '{target}' already. Give y another name with target=...")
    return replace(raw, names=(*raw.names, target), columns=(*raw.columns, classes))


def to_json(findings: Sequence[IntakeFinding]) -> list[Mapping[str, Any]]:
    """Return the findings as JSON values."""
    return [finding.to_json() for finding in findings]
