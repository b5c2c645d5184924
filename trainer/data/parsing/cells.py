"""Represent one column as distinct words, with their meaning and values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trainer.data.formats.raw import as_text
from trainer.data.parsing.words import is_missing_word
from trainer.dtypes import BoolArray, FloatArray

MARKS = ("NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "?")
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,5})?$"
WHOLE = r"^[+-]?[0-9]+$"
WHOLE_WORD = re.compile(WHOLE, re.ASCII)
LONG = re.compile(r"^([+-]?[0-9]{16,1000})(\.0*)?$")
LEADING_ZERO = r"^[+-]?0[0-9]+$"
TRUTH = {"true": 1.0, "false": 0.0}
TWO_LETTERS = "^[A-Z]{2}$"
FEW_WORDS = 10
LARGEST_EXACT = 2**53  # float64 does not represent every integer beyond this


def _spellings(words: Iterable[str]) -> list[str]:
    """Return each word in lower case, with a capital, and in capitals."""
    return [spelt for w in words for spelt in (w.lower(), w.capitalize(), w.upper())]


INFINITE = [sign + word for word in _spellings(("inf", "infinity")) for sign in ("", "+", "-")]


@dataclass(frozen=True, kw_only=True)
class Cells:
    """A column as distinct words (`array`, in order of appearance) and the `index` (n,) of each row's word, uint8 or int32."""

    array: pa.Array
    index: np.ndarray

    @classmethod
    def of(cls, column: pa.Array) -> Cells:
        """Return the cells of a raw column, trimmed; a null is the empty word."""
        encoded = as_text(column).fill_null("").dictionary_encode()
        # a table has the cells of all columns at once, and most columns have few words
        index = encoded.indices.to_numpy(zero_copy_only=False)
        few = len(encoded.dictionary) <= 1 << 8
        return cls(array=encoded.dictionary, index=index.astype(np.uint8 if few else np.int32))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The distinct words as Python strings, converted on first use."""
        return tuple(self.array.to_pylist())

    def word(self, i: int | np.integer) -> str:
        """Return the distinct word number `i`."""
        return str(self.array[int(i)].as_py())

    @cached_property
    def counts(self) -> np.ndarray:
        """Rows of each word, int64."""
        return np.bincount(self.index, minlength=len(self.array))

    @cached_property
    def numbers(self) -> BoolArray:
        """Boolean mask of the words that are finite numbers in decimal notation."""
        return self._decimal & np.isfinite(self._floats)

    @cached_property
    def infinite(self) -> BoolArray:
        """Boolean mask of the words that mean infinity or are numbers too large for float64."""
        infinite_words = self._is_in(INFINITE)
        return infinite_words | (self._decimal & ~np.isfinite(self._floats))

    @cached_property
    def truths(self) -> BoolArray:
        """Boolean mask of the words that mean true or false: in lower case, capitalised or in capitals."""
        return self._is_in(_spellings(TRUTH))

    @cached_property
    def leading_zeros(self) -> BoolArray:
        """Boolean mask of the words that are integers with leading zeros."""
        return self._matches(LEADING_ZERO)

    @cached_property
    def whole(self) -> BoolArray:
        """Boolean mask of the words that are written as integers."""
        return self._matches(WHOLE)

    @cached_property
    def inexact(self) -> BoolArray:
        """Boolean mask of the words that are integers that float64 may round."""
        out = np.abs(self._floats) >= LARGEST_EXACT
        for i in out.nonzero()[0]:
            # a number in scientific notation is approximate anyway, so only plain integers count
            match = LONG.match(self.word(i))
            out[i] = match is not None and abs(int(match[1])) > LARGEST_EXACT
        return out

    @cached_property
    def marks(self) -> BoolArray:
        """Boolean mask of the words that could mean 'missing'."""
        return self._is_in(("", *MARKS))

    @cached_property
    def missing(self) -> BoolArray:
        """Boolean mask of the words that mean 'missing' here. Among other two-letter codes, 'NA' is a value."""
        if not self.marks.any() or not self._is_in(("NA",)).any():
            return self.marks
        others = self.array.filter(pa.array(~self.marks))
        codes = pc.sum(pc.match_substring_regex(others, TWO_LETTERS)).as_py() or 0
        if len(others) and 2 * codes >= len(others):
            return self.marks & ~self._is_in(("NA",))
        return self.marks

    @cached_property
    def empty_numbers(self) -> BoolArray:
        """Boolean mask of the words that mean an empty cell in a numeric column, such as marks, `-` or `unknown`."""
        out = self.marks.copy()
        for i in np.flatnonzero(~(out | self.numbers | self.truths)):
            out[i] = is_missing_word(self.word(i))
        return out

    def floats(self) -> FloatArray:
        """Return the value of each word, float64; NaN unless it is a number, true or false."""
        return self._values.copy()

    @cached_property
    def _values(self) -> FloatArray:
        out = np.where(self.numbers, self._floats, np.nan)
        for i in self.truths.nonzero()[0]:
            out[i] = TRUTH[self.word(i).lower()]
        return out + 0.0  # adding 0.0 turns -0.0 into 0.0, which would print differently

    def words_at(self, rows: BoolArray) -> BoolArray:
        """Return the mask of the words that occur in the rows of a mask, bool (n,)."""
        out = np.zeros(len(self.array), bool)
        out[self.index[rows]] = True
        return out

    def counts_of(self, chosen: BoolArray) -> dict[str, int]:
        """Return the rows of each word that is chosen; `chosen` has one bool per word."""
        return {self.word(i): int(self.counts[i]) for i in np.flatnonzero(chosen)}

    def rows_of(self, chosen: BoolArray, most: int) -> np.ndarray:
        """Return the first `most` rows whose word is chosen; `chosen` has one bool per word."""
        return np.flatnonzero(chosen[self.index])[:most]

    @cached_property
    def _floats(self) -> FloatArray:
        if self._plain_floats is not None:
            return self._plain_floats
        # pyarrow's parser rounds correctly, but does not accept a plus sign
        plain = pc.utf8_ltrim(self.array, characters="+")
        numeric = self._decimal
        out = np.full(len(plain), np.nan)
        out[numeric] = _cast(plain.filter(pa.array(numeric)))
        return out

    @cached_property
    def _no_decimals(self) -> np.ndarray:
        return (~self._decimal).nonzero()[0]

    def _is_in(self, words: Iterable[str]) -> BoolArray:
        """Return the mask of the words that are among `words`. None of `words` may be a number in decimal notation."""
        out = np.zeros(len(self.array), bool)
        others = self._no_decimals
        if not len(others):
            return out
        if len(others) <= FEW_WORDS:  # a look-up of each is faster than a call of pyarrow
            known = frozenset(words)
            out[[i for i in others.tolist() if self.word(i) in known]] = True
            return out
        found = pc.is_in(self.array.take(pa.array(others)), value_set=pa.array(list(words), pa.string()))
        out[others] = found.to_numpy(zero_copy_only=False)
        return out

    @cached_property
    def _plain_floats(self) -> FloatArray | None:
        """The values if all words are finite numbers without exponents, in a third of the time of the general way; else None."""
        try:
            values: FloatArray = pc.cast(self.array, pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            return None
        if not np.isfinite(values).all() or pc.any(pc.match_substring(self.array, "e", ignore_case=True)).as_py():
            return None
        return values

    @cached_property
    def _decimal(self) -> BoolArray:
        if self._plain_floats is not None:
            return np.ones(len(self.array), bool)
        return self._matches(NUMBER)

    def _matches(self, pattern: str) -> BoolArray:
        return pc.match_substring_regex(self.array, pattern).to_numpy(zero_copy_only=False).astype(bool)


def _cast(plain: pa.Array) -> FloatArray:
    try:
        return pc.cast(plain, pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # pyarrow does not parse notations such as '5.' or numbers out of range
        return np.array([float(w) for w in plain.to_pylist()])
