"""Guess the kind of each column, with a reason, and the target."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trainer.data.formats.raw import RawTable
from trainer.data.parsing.cells import LARGEST_EXACT, Cells
from trainer.data.parsing.codes import codes_text, likely_codes
from trainer.dtypes import FloatArray
from trainer.table import ColumnKind, ColumnSchema, MissingPolicy, RowNaming

FEW_VALUES = 10
COMMA_NUMBER = r"^[+-]?[0-9]+,[0-9]+$"
EXAMPLES = 5
LISTED = 20
MAX_REPEATS = 4  # rows that share one number in a table with several rows for each case
MAX_COPIED_SHARE = (
    0.05  # largest share of rows beyond the usual number of rows of each number, as where rows were copied
)
MIN_USUAL_SHARE = 0.8  # smallest share of the numbers with the usual number of rows
MIN_NUMBERS_WITH_GAPS = 20  # different numbers in a counter with removed rows; fewer may be a sorted measurement
SHUFFLED_GAP_FACTOR = 1.25  # shuffled numbers may be a sample of a range, and leave out one in five
SHORTEST_LONG_NUMBER = 10_000
MIN_SPREAD_NUMBERS = 100  # fewer numbers, such as salaries, may look evenly spread by chance
EVEN_SPREAD = 1.36  # critical value of the Kolmogorov-Smirnov test at 5 %, multiplied by the square root of n
LARGEST_GAP_FACTOR = 2  # a counter with removed rows still has at least every second number
ID_NAMES = re.compile(
    r"(unnamed: ?\d+|__index_level_\d+__|row ?names?|((row|record|case|obs)[ _.-]?)?(id|index|idx)|(.*[ _.-])?(id|uuid|guid))",
    re.IGNORECASE,
)
# names of identifiers or of amounts, such as "invoice"; a plural, such as "employees" or "rooms_no", is more likely to be a count
NUMBER_NAMES = re.compile(
    r"(((row|record|case|obs)[ _.-]?)?(nr|no)\.?"
    r"|(customer|client|patient|account|invoice|ticket|passenger|student|employee|member|user)[ _.-]?((number|no|nr|ref)\.?)?"
    r"|(?!(atomic|mass|wave|mach|reynolds|octane|cetane|iodine|acid)[ _.-]).*[^s][ _.-](number|no|nr|reference)\.?|[a-z]+nummer)",
    re.IGNORECASE,
)
# postal codes, which are spread like account numbers, but say where a case is
PLACE_NAMES = re.compile(r"(.*[ _.-])?(zip|plz|postleitzahl|postnummer|(zip|post|postal)[ _.-]?code)", re.IGNORECASE)
# names of things that are not quantities; a code of a place or a class, such as "icd code", says something about a case
CODE_NAMES = re.compile(
    r"(?!(area|country|region|state|city|district|dial(l?ing)?|icd[0-9]*|nace|naics|sic|isco|occupation|industry|department"
    r"|branch|status|error|exit|response|colou?r|currency|diagnosis|procedure)[ _.-])"
    r"((.*[ _.-])?(code|serial|sku|isbn)|bar ?code)",
    re.IGNORECASE,
)
HEXADECIMAL = "^[0-9A-Fa-f]{4,64}$"
CAMEL_ID = re.compile(r".*[a-z]I[Dd]")
TARGET_NAMES = (
    "class", "target", "label", "y", "diagnosis", "outcome", "species", "labels", "classes", "category", "response", "survived",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class GuessedColumn:
    """The guess for one column: its schema, the reason, counts, and up to five distinct examples.

    `constant`: one value or none; `identifier`: the values name or count the rows; `likely_identifier`: they may;
    `identifier_reason`: why, in both cases; `problems`: why the column cannot be used as it is, with line numbers; `marks`: the
    words read as missing; `special`: numbers that look like codes.
    """

    schema: ColumnSchema
    reason: str
    missing: int
    distinct: int
    examples: tuple[str, ...]
    constant: bool
    identifier: bool
    marks: tuple[str, ...]
    special: tuple[float, ...] = ()
    problems: tuple[str, ...] = ()
    likely_identifier: bool = False
    identifier_reason: str = ""

    @property
    def name(self) -> str:
        return self.schema.name

    @property
    def names_rows(self) -> RowNaming | None:
        """Confidence that the values name or count the rows."""
        if self.identifier:
            return RowNaming.CERTAIN
        return RowNaming.LIKELY if self.likely_identifier else None


def infer(raw: RawTable, known: Mapping[str, GuessedColumn] | None = None) -> tuple[GuessedColumn, ...]:
    """Return the guess for every column of `raw`, in order, including the target; guesses in `known` are not made again."""
    known = known or {}
    return tuple(
        known[name] if name in known else guess(name, Cells.of(column), raw)
        for name, column in zip(raw.names, raw.columns, strict=True)
    )


def guess(name: str, cells: Cells, raw: RawTable) -> GuessedColumn:
    """Return the guess for one column."""
    values = ~cells.missing
    distinct = int(values.sum())
    missing = int(cells.counts[cells.missing].sum())
    n = len(cells.index) - missing
    kind, reason, identifier = _kind(name, cells, n, distinct)
    identifier_reason = reason if identifier else ""
    if distinct and pa.types.is_dictionary(raw.column(name).type):
        kind = ColumnKind.CATEGORICAL
        reason = f"the file declares {distinct} categories"
    if name == raw.detected.index and distinct:
        identifier = True
        identifier_reason = "the file has it as the name of each row, which says nothing about a new row"
        reason = f"{reason}; {identifier_reason}"
    likely = False
    if kind is ColumnKind.NUMERIC:
        numbers = _row_values(cells)
        if why := numbers_rows(name, numbers):
            identifier = True
            identifier_reason = f"{why}, which says nothing about a new row"
            reason = f"{reason}; {identifier_reason}"
        elif not identifier and (why := may_number_rows(numbers, name)):
            likely = True
            identifier_reason = why
            reason = f"{reason}; {why}"
    marks = tuple(w for w in (cells.word(i) for i in np.flatnonzero(cells.missing)) if w)
    if missing:
        how = f" or {' or '.join(repr(m) for m in marks)}" if marks else ""
        reason += f"; {missing} {'cell is' if missing == 1 else 'cells are'} empty{how}"
    if (cells.marks & values).any():
        reason += "; 'NA' appears among other two-letter codes and is kept as a value"
    special: tuple[float, ...] = ()
    if kind is ColumnKind.NUMERIC:
        codes = likely_codes(np.where(cells.numbers, cells.floats(), np.nan), cells.counts)
        special = tuple(codes)
        if codes:
            reason += (
                f"; {codes_text(codes)} {'stands' if len(codes) == 1 else 'stand'} apart and may be codes, not numbers"
            )
    infinite = cells.infinite if kind is ColumnKind.NUMERIC else np.zeros(len(cells.array), bool)
    return GuessedColumn(
        schema=ColumnSchema(
            name=name,
            kind=kind,
            categories=sorted_words(cells, values) if kind is ColumnKind.CATEGORICAL else (),
            missing=MissingPolicy.LEARN,
        ),
        reason=reason,
        missing=missing,
        distinct=distinct,
        examples=tuple(_short(cells.word(i)) for i in np.flatnonzero(values)[:EXAMPLES]),
        constant=distinct < 2,
        identifier=identifier,
        marks=marks,
        special=special,
        problems=places(raw, cells, infinite, f"column '{name}' has %s, which is not a finite number"),
        likely_identifier=likely,
        identifier_reason=identifier_reason,
    )


def _kind(name: str, cells: Cells, n: int, distinct: int) -> tuple[ColumnKind, str, bool]:
    """Return the kind, the reason, and whether the column names the rows."""
    values = ~cells.missing
    if not distinct:
        return ColumnKind.CATEGORICAL, "there is no value at all", False
    if cells.truths[values].all():
        return ColumnKind.BINARY, "only true and false: true is 1", False
    numeric = cells.numbers | cells.infinite
    if numeric[values].all() and cells.numbers[values].any():
        # in a column of numbers, every mark such as "-" means a missing cell
        for odd, why in (
            (cells.leading_zeros, "leading zeros such as {}: kept as text"),
            (cells.inexact, "whole numbers beyond 2^53 such as {} would be rounded: kept as text"),
        ):
            if odd[values].any():
                word = cells.word(int(np.flatnonzero(odd & values)[0]))
                return ColumnKind.CATEGORICAL, why.format(_short(word)), distinct == n > 1
        return (*_numeric(cells, values, n, distinct), False)
    stray = stray_words(cells)
    if stray is not None and distinct == n and _are_hexadecimal(cells, values):
        return ColumnKind.CATEGORICAL, f"all {n} texts are different hexadecimal numbers of the row", True
    if stray is not None:
        # numbers with a few words are never an identifier, because one wrong guess would leave out a useful column
        return ColumnKind.CATEGORICAL, f"{stray.figure}: kept as text", False
    if distinct == n > 1:
        return (
            ColumnKind.CATEGORICAL,
            f"all {n} texts are different: a name or number of the row, useless for new rows",
            True,
        )
    repeats = _equal_repeats(cells.counts[values])
    is_named = distinct > FEW_VALUES and repeats > 0 and (_is_id_name(name) or _is_number_name(name))
    # twelve months, each in two years, are not cases
    if is_named or (repeats == 2 and distinct >= MIN_NUMBERS_WITH_GAPS):
        return (
            ColumnKind.CATEGORICAL,
            f"{distinct} texts, each in {repeats} rows: a name of the case, useless for new rows",
            True,
        )
    reason = f"text with {distinct} different values" if distinct > 1 else "the same text everywhere"
    return ColumnKind.CATEGORICAL, reason, False


def _are_hexadecimal(cells: Cells, values: np.ndarray) -> bool:
    """Return whether the texts are hexadecimal numbers of one length, some with leading zeros and a tenth with letters."""
    words = cells.array.filter(pa.array(values))
    if len(words) < MIN_NUMBERS_WITH_GAPS or len(pc.unique(pc.binary_length(words))) > 1:
        return False
    if not pc.all(pc.match_substring_regex(words, HEXADECIMAL)).as_py():
        return False
    letters = pc.sum(pc.match_substring_regex(words, "[A-Fa-f]")).as_py()
    return bool(cells.leading_zeros[values].any()) and 10 * letters >= len(words)


class StrayWords(NamedTuple):
    """A mostly numeric column: `numbers` of `cells` values, and the distinct `words` that are not numbers."""

    numbers: int
    cells: int
    words: tuple[str, ...]

    @property
    def figure(self) -> str:
        """The counts with an example."""
        return f"{self.numbers:,} of {self.cells:,} values are numbers, but others such as {_short(self.words[0])!r} are not"


def stray_words(cells: Cells) -> StrayWords | None:
    """Return the words of a column whose values are mostly numbers; None if it has no words, or numbers are not the majority."""
    values = ~cells.missing
    numeric = _like_numbers(cells) & values
    strange = np.flatnonzero(values & ~numeric)
    numbers = int(cells.counts[numeric].sum())
    total = int(cells.counts[values].sum())
    if not len(strange) or numbers <= total / 2:
        return None
    return StrayWords(numbers, total, tuple(cells.word(i) for i in strange))


def number_texts(cells: Cells) -> int:
    """Return the number of different values if all are numbers in text and too many for codes; else 0."""
    values = ~cells.missing
    distinct = int(values.sum())
    if distinct <= FEW_VALUES or not _like_numbers(cells)[values].all() or cells.leading_zeros[values].any():
        return 0
    return distinct


def _like_numbers(cells: Cells) -> np.ndarray:
    """Return for each word whether it is a number, also with a decimal comma."""
    commas = pc.match_substring_regex(cells.array, COMMA_NUMBER).to_numpy(zero_copy_only=False)
    return cells.numbers | cells.infinite | commas


def _numeric(cells: Cells, values: np.ndarray, n: int, distinct: int) -> tuple[ColumnKind, str]:
    numbers = np.unique(cells.floats()[values & cells.numbers])
    if ((numbers == 0) | (numbers == 1)).all() and not cells.infinite[values].any():
        return ColumnKind.BINARY, "only 0 and 1" if len(numbers) == 2 else f"only the number {numbers[0]:g}"
    if len(numbers) <= FEW_VALUES and cells.whole[values].all():
        value_list = ", ".join(f"{v:.0f}" for v in numbers)
        only = (
            f"whole numbers with only {len(numbers)} values ({value_list})"
            if len(numbers) > 1
            else f"only the number {value_list}"
        )
        return ColumnKind.NUMERIC, f"{only}: kept as numbers; choose categorical if they are codes"
    return ColumnKind.NUMERIC, f"all {n} values are numbers"


def _row_values(cells: Cells) -> FloatArray:
    """Return the numbers of the rows that have one, in the order of the file."""
    return cells.floats()[cells.index[~cells.missing[cells.index]]]


def numbers_rows(name: str, values: FloatArray) -> str:
    """Return how whole numbers identify or count the rows; "" if they do neither.

    Parameters
    ----------
    name : str
        The column.
    values : float64 array of shape (n,)
        Its numbers in the order of the rows, without empty cells.
    """
    if not len(values) or not _all_exact_integers(values):
        return ""
    distinct, counts = np.unique(values, return_counts=True)
    repeats = _equal_repeats(counts)
    if len(distinct) <= FEW_VALUES:
        return ""
    if not repeats:
        usual = _usual_repeats(counts)
        return f"it numbers the rows, most numbers in {usual} rows" if usual and _is_counter(values, distinct) else ""
    each = f", each number in {repeats} rows" if repeats > 1 else ""
    if _is_counter(values, distinct):
        return f"it numbers the rows{each}"
    is_code = bool(CODE_NAMES.fullmatch(name.strip())) and not PLACE_NAMES.fullmatch(name.strip())
    is_code = is_code and len(distinct) >= MIN_NUMBERS_WITH_GAPS
    if is_code or _is_id_name(name) or (_is_number_name(name) and _even_numbers(distinct)):
        return (
            f"it is called '{name}' and names the rows{each}" if each else f"it is called '{name}' and names each row"
        )
    return ""


def may_number_rows(values: FloatArray, name: str = "") -> str:
    """Return why whole numbers may identify the rows, in any order; "" without evidence.

    Each is in one row, or all are in the same small number of rows, except where few rows were copied. They leave out few
    numbers between the lowest and the highest, or they look like account numbers: long, with equal numbers of digits, and
    evenly spread. Or the column has a name such as "invoice". A column with a name such as "zip" has postal codes, which
    identify no row.

    Parameters
    ----------
    values : float64 array of shape (n,)
        The numbers of a column without empty cells.
    name : str
        The column.
    """
    if not len(values) or not _all_exact_integers(values) or PLACE_NAMES.fullmatch(name.strip()):
        return ""
    distinct, counts = np.unique(values, return_counts=True)
    repeats = _equal_repeats(counts)
    if not repeats:
        return ""
    copies = int((counts > repeats).sum())
    if repeats > 1:
        each = f"are in {repeats} rows each" + (f", apart from copies of {copies}" if copies else "")
        why = _even_numbers(distinct, each)
        return f"{why}: they may name the cases" if why else ""
    each = f"but {copies} are in one row each" if copies else "are different"
    why = _even_numbers(distinct, each)
    if not why and _is_number_name(name) and len(distinct) > FEW_VALUES:
        why = f"it is called '{name}' and all {len(distinct):,} numbers {each}"
    return f"{why}: they may name the rows" if why else ""


def _even_numbers(distinct: FloatArray, each: str = "are different") -> str:
    """Return how whole numbers in ascending order are spread like identifiers; "" if they are not.

    `each` says in how many rows each of them is, to follow "all 50 numbers".
    """
    n = len(distinct)
    if n < MIN_NUMBERS_WITH_GAPS:
        return ""
    low = int(distinct[0])
    high = int(distinct[-1])
    step = int(np.gcd.reduce(np.diff(distinct).astype(np.int64)))
    if (high - low) // step + 1 <= SHUFFLED_GAP_FACTOR * n:
        return f"all {n:,} numbers {each} and leave out few from {low} to {high}"
    if n < MIN_SPREAD_NUMBERS or low < SHORTEST_LONG_NUMBER or len(str(low)) != len(str(high)):
        return ""
    uneven = np.abs((distinct - low) / (high - low) - np.linspace(0, 1, n)).max()
    if uneven > EVEN_SPREAD / np.sqrt(n):
        return ""
    return f"all {n:,} numbers {each}, have {len(str(low))} digits and are spread evenly"


def _all_exact_integers(values: FloatArray) -> bool:
    """Return whether all are integers that float64 represents exactly; every larger float64 is an integer, too."""
    return bool(((values == np.round(values)) & (np.abs(values) <= LARGEST_EXACT)).all())


def _is_counter(values: FloatArray, distinct: FloatArray) -> bool:
    """Return whether the values run through their sorted numbers `distinct` in order, with few numbers left out."""
    steps = np.diff(values)
    if not ((steps >= 0).all() or (steps <= 0).all()):
        return False
    gaps = np.diff(distinct)
    if (gaps == gaps[0]).all():
        return True
    places = (distinct[-1] - distinct[0]) / np.gcd.reduce(gaps.astype(np.int64)) + 1
    return len(distinct) >= MIN_NUMBERS_WITH_GAPS and bool(places <= LARGEST_GAP_FACTOR * len(distinct))


def _equal_repeats(counts: np.ndarray) -> int:
    """Return the number of rows of each value if it is the same small number for all; else 0.

    Few values may be in one row more, since tables have copied rows.
    """
    usual = int(counts.min())
    copies = counts - usual
    is_equal = copies.max() <= max(1, usual // 2) and copies.sum() <= MAX_COPIED_SHARE * counts.sum()
    return usual if usual <= MAX_REPEATS and is_equal else 0


def _usual_repeats(counts: np.ndarray) -> int:
    """Return the number of rows of nearly all values if no value has many rows, as where rows were lost; else 0."""
    usual = int(np.bincount(counts).argmax()) if counts.max() <= MAX_REPEATS else 0
    return usual if usual > 1 and (counts == usual).mean() >= MIN_USUAL_SHARE else 0


def _is_id_name(name: str) -> bool:
    return bool(ID_NAMES.fullmatch(name.strip()) or CAMEL_ID.fullmatch(name.strip()))


def _is_number_name(name: str) -> bool:
    return bool(NUMBER_NAMES.fullmatch(name.strip()))


def sorted_words(cells: Cells, chosen: np.ndarray) -> tuple[str, ...]:
    """Return the chosen words, sorted by value if all are numbers, else by code point."""
    words = cells.array.filter(pa.array(chosen)).to_pylist()
    if cells.numbers[chosen].all():
        values = cells.floats()[chosen]
        return tuple(w for _, w in sorted(zip(values.tolist(), words, strict=True)))
    return tuple(sorted(words))


def places(raw: RawTable, cells: Cells, wrong: np.ndarray, sentence: str) -> tuple[str, ...]:
    """Return one sentence with line number for each of the first 20 rows with a wrong word, which replaces %s."""
    if not wrong.any():
        return ()
    rows = cells.rows_of(wrong, LISTED)
    out = [
        f"{raw.place} {raw.line_numbers[i]}: " + sentence.replace("%s", repr(_short(cells.word(cells.index[i])))) + "."
        for i in rows
    ]
    total = int(cells.counts[wrong].sum())
    return (*out, f"... and {total - LISTED} more rows.") if total > LISTED else tuple(out)


def guess_target(columns: Sequence[GuessedColumn]) -> tuple[str, str]:
    """Return the name of the likely target column, and the reason."""
    by_name = {column.name.strip().lower(): column for column in reversed(columns)}
    for name in TARGET_NAMES:
        column = by_name.get(name)
        if column is not None and not column.constant:
            return column.name, f"the column is called '{column.name}'"
    return columns[-1].name, "it is the last column"


def _short(word: str, most: int = 60) -> str:
    return word if len(word) <= most else word[: most - 1] + "…"
