"""Read the rows of a JSON body directly into a matrix.

Only the most frequent form is read: `{"rows": [{"a": 1, "b": 2.5}, ...]}`, in which every row is written like the first
one and every cell is a number. For other bodies the result is None, and the general parser reads them. A number with
few digits and a small exponent is the quotient or product of two exact doubles (Clinger 1990, "How to read floating
point numbers accurately"). Others are rounded as in Lemire 2021, "Number parsing at a gigabyte per second", and the
rest by C's `strtod`. All three round correctly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import orjson
from numba import njit, types

from trainer.dtypes import FloatArray
from trainer.kernels.bits import ctpop
from trainer.precompiled import ready

HEAD = re.compile(rb'\s*\{\s*"rows"\s*:\s*\[\s*')
CELL = re.compile(rb"[-+.0-9eE]*")
TAIL = re.compile(rb"\s*\]\s*\}\s*\Z")
POWERS = 10.0 ** np.arange(23)  # 10**22 is the largest power of ten that is an exact double
TWOS = 2.0 ** np.arange(-1075.0, 972.0)  # TWOS[biased exponent] scales an integer mantissa
MAX_EXACT_INTEGER = np.uint64(2**53)  # all integers up to this one are exact doubles
SMALLEST = 290  # up to this absolute exponent of ten, `_scale_decimal` meets no subnormal and no infinite result
PADDING_BYTES = 32  # zeros after the text, so that eight bytes can be read at its end
# each byte repeated eight times in a word
DISTANCE, ZEROS, TOPS, DIGITS = (np.uint64(int(byte * 8, 16)) for byte in ("46", "30", "80", "0f"))
BYTE = np.uint64(255)
LOW = np.uint64(2**32 - 1)
HALF = np.uint64(32)
ONES = np.uint64(2**64 - 1)


def _fives() -> np.ndarray:
    """Return the first 128 bits of each power of five as two uint64, by exponent of ten (Lemire 2021).

    They are rounded down, or up for negative exponents.
    """
    out = np.empty((2 * SMALLEST + 1, 2), np.uint64)
    for q in range(-SMALLEST, SMALLEST + 1):
        if q >= 0:
            bits = 5**q << 128 >> max(0, (5**q).bit_length())
        else:
            power = 5**-q
            bits = (1 << (power.bit_length() + 127)) // power + 1
        out[q + SMALLEST] = bits >> 64, bits & (2**64 - 1)
    return out


FIVES = _fives()

# This is strtod(address, NULL) of the C library. It stops at the character after a number.
_strtod = types.ExternalFunction("strtod", types.float64(types.intp, types.intp))


def rows_matrix(content: bytes | bytearray, names: Sequence[str], most: int) -> FloatArray | None:
    """Return the cells of all rows, float64 (n, columns in the order of `names`).

    Return None for other bodies, or for more than `most` rows.
    """
    head = HEAD.match(content)
    if head is None or not names:
        return None
    first = _first_row(content, head.end())
    place = {name: j for j, name in enumerate(names)}
    if first is None or first.keys() != place.keys():
        return None
    text, words = pad_content(content)
    rows = int(np.count_nonzero(text[head.end() :] == ord("{")))
    if rows > most:
        return None
    keys = _before_cells(content, head.end(), list(first))
    if keys is None:
        return None
    parts = [_as_words(key) for key in keys]
    ends = np.cumsum([len(p) for p in parts])
    widths = np.array([len(key) for key in keys])
    order = np.array([place[name] for name in first])
    out = np.empty((rows, len(names)))
    row_count, end = _read_rows(text, words, head.end(), np.concatenate(parts), ends, widths, order, POWERS, FIVES, out)
    if row_count < 1 or TAIL.match(content, end) is None:
        return None
    return out[:row_count]


def pad_content(content: bytes | bytearray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of a text padded with zeros, uint8, and the eight bytes from each position on as one uint64."""
    text = np.frombuffer(content + bytes(PADDING_BYTES), np.uint8)
    return text, np.ndarray(len(text) - 7, "<u8", text, strides=(1,))


@lru_cache(maxsize=10_000)
def _as_words(key: bytes) -> np.ndarray:
    """Return a key as words to compare, uint64 (words, 3): offset, characters, and mask."""
    starts = [*range(0, len(key) - 7, 8), max(0, len(key) - 8)]
    mask = 2 ** (8 * min(8, len(key))) - 1
    return np.array([(k, int.from_bytes(key[k : k + 8], "little"), mask) for k in starts], np.uint64)


def _first_row(content: bytes | bytearray, start: int) -> dict[str, object] | None:
    """Return the first row, which defines the order of the columns, or None if it is no plain object.

    Plain rows contain no closing brace within a name or value.
    """
    try:
        row = orjson.loads(content[start : content.index(b"}", start) + 1])
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _before_cells(content: bytes | bytearray, start: int, names: Sequence[str]) -> list[bytes] | None:
    """Return the text before each cell of the first row: brace or comma, name and colon, with white space.

    Return None if the row is written in another way.
    """
    patterns = []
    at = start
    for name in names:
        match = _before(name).match(content, at)
        if match is None:
            return None
        patterns.append(bytes(match[0]))
        at = CELL.match(content, match.end()).end()  # type: ignore[union-attr]
    return patterns


@lru_cache(maxsize=10_000)
def _before(name: str) -> re.Pattern[bytes]:
    return re.compile(rb"\s*[{,]\s*" + re.escape(orjson.dumps(name)) + rb"\s*:\s*")


@ready
@njit(cache=True, nogil=True)
def _blank(text, i):
    """Return the next position from `i` on that is not white space.

    Callers check that it lies within the text.
    """
    while i < len(text) and (text[i] == 32 or text[i] == 10 or text[i] == 13 or text[i] == 9):
        i += 1
    return i


@ready
@njit(cache=True, nogil=True)
def _digits(text, i, value, room):
    """Parse the digits from `i` on.

    Return their end, `value` continued by them, and how many more digits fit, which is negative if there are too many.
    """
    while i < len(text) and text[i] >= 48 and text[i] <= 57:
        if room > 0:
            value = value * np.uint64(10) + np.uint64(text[i] - 48)
        if value > 0 or room <= 0:
            room -= 1
        i += 1
    return i, value, room


@ready
@njit(cache=True, nogil=True)
def _leading(word):
    """Count the leading digits among the eight characters of a word.

    The top bit of a byte is set if it is no digit. Carries from such a byte only reach later ones (Lemire 2021).
    """
    others = ((word + DISTANCE) | (word - ZEROS)) & TOPS
    return np.int64(ctpop((others & (~others + np.uint64(1))) - np.uint64(1))) >> 3


@ready
@njit(cache=True, nogil=True)
def _eight(word, count):
    """Parse the first `count` characters of a word, 1 to 8 digits, by combining two, four and eight of them."""
    v = (word << np.uint64(64 - 8 * count)) & DIGITS
    v = ((v * np.uint64(2561)) >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
    v = ((v * np.uint64(6553601)) >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
    return np.float64((v * np.uint64(42949672960001)) >> np.uint64(32))


@ready
@njit(cache=True, nogil=True)
def _short(words, i, powers):
    """Parse a number of up to 15 digits with an optional point.

    Return its end and value. The end is 0 for other numbers.
    """
    negative = words[i] & BYTE == 45
    if negative:
        i += 1
    first = words[i]
    whole = _leading(first)
    # JSON has no numbers that begin with a zero and another digit
    if whole == 0 or whole == 8 or (whole > 1 and first & BYTE == 48):
        return 0, 0.0
    value = _eight(first, whole)
    end = i + whole
    part = 0
    if words[end] & BYTE == 46:
        part = _leading(words[end + 1])
        if part == 0:
            return 0, 0.0
        value = value * powers[part] + _eight(words[end + 1], part)
        end += 1 + part
        if part == 8:
            more = _leading(words[end])
            if whole + part + more > 15:
                return 0, 0.0
            if more:
                value = value * powers[more] + _eight(words[end], more)
                part = part + more
                end = end + more
    if words[end] & np.uint64(0xDF) == 69:  # this function reads no exponents, which begin with `e` or `E`
        return 0, 0.0
    return end, -value / powers[part] if negative else value / powers[part]


@ready
@njit(cache=True, nogil=True)
def _number(text, i, powers, fives):
    """Parse the JSON number at `i`. Return its end, which is -1 if there is none, and its value."""
    start = i
    n = len(text)
    negative = i < n and text[i] == 45
    if negative:
        i += 1
    if i >= n or text[i] < 48 or text[i] > 57:
        return -1, 0.0
    if text[i] == 48 and i + 1 < n and text[i + 1] >= 48 and text[i + 1] <= 57:
        return -1, 0.0  # JSON has no numbers that begin with a zero and another digit
    i, value, room = _digits(text, i, np.uint64(0), 19)
    exponent = 0
    if i < n and text[i] == 46:
        point = i + 1
        i, value, room = _digits(text, point, value, room)
        if i == point:
            return -1, 0.0
        exponent = point - i
    if i < n and (text[i] == 101 or text[i] == 69):
        i += 1
        below = i < n and text[i] == 45
        if i < n and (text[i] == 45 or text[i] == 43):
            i += 1
        begin = i
        i, power, left = _digits(text, i, np.uint64(0), 4)
        if i == begin:
            return -1, 0.0
        if left < 0:
            room = -1
        exponent += -np.int64(power) if below else np.int64(power)
    found = -1.0
    if room >= 0 and value <= MAX_EXACT_INTEGER and exponent >= -22 and exponent <= 22:
        found = np.float64(value) * powers[exponent] if exponent >= 0 else np.float64(value) / powers[-exponent]
    elif room >= 0:
        found = _scale_decimal(value, exponent, fives)
    if found < 0.0:
        return i, _strtod(text.ctypes.data + start, 0)
    return i, -found if negative else found


@ready
@njit(cache=True, nogil=True)
def _product(a, b):
    """Return the upper and the lower half of the product of two uint64."""
    a0 = a & LOW
    a1 = a >> HALF
    b0 = b & LOW
    b1 = b >> HALF
    middle = a1 * b0 + ((a0 * b0) >> HALF)
    other = a0 * b1 + (middle & LOW)
    return a1 * b1 + (middle >> HALF) + (other >> HALF), a * b


@ready
@njit(cache=True, nogil=True)
def _scale_decimal(value, exponent, fives):
    """Return value * 10**exponent, correctly rounded, or -1 if `strtod` must parse it (Lemire 2021, algorithm 1)."""
    if exponent < -SMALLEST or exponent > SMALLEST or value == 0:
        return -1.0
    shift = 0
    while (value >> np.uint64(63)) == 0:
        value = value << np.uint64(1)
        shift += 1
    high, low = _product(value, fives[exponent + SMALLEST, 0])
    if (high & np.uint64(0x1FF)) == np.uint64(0x1FF):
        more, _ = _product(value, fives[exponent + SMALLEST, 1])
        low = low + more
        if low < more:
            high = high + np.uint64(1)
    if low == ONES and (exponent < -27 or exponent > 55):
        return -1.0
    upper = high >> np.uint64(63)
    mantissa = high >> (upper + np.uint64(9))
    power = ((217706 * exponent) >> 16) + 63 + np.int64(upper) - shift + 1023
    if power <= 0 or power >= 2046:
        return -1.0
    halfway = low <= 1 and exponent >= -4 and exponent <= 23 and (mantissa << (upper + np.uint64(9))) == high
    if halfway and (mantissa & np.uint64(3)) == 1:
        mantissa = mantissa & ~np.uint64(1)  # rounds to even
    mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
    return np.float64(mantissa) * TWOS[power]


@ready
@njit(cache=True, nogil=True)
def _read_rows(text, words, i, keys, ends, widths, order, powers, fives, out):
    """Fill `out` with the rows from `i` on.

    Return their number, or -1 for another form, and the position after the last one.
    """
    n = len(text) - PADDING_BYTES
    row = 0
    while True:
        if row >= len(out):
            return -1, i
        begin = 0
        for j in range(len(ends)):
            other = np.uint64(0)
            if i + widths[j] >= n:
                return -1, i
            for k in range(begin, ends[j]):
                other |= (words[i + np.int64(keys[k, 0])] ^ keys[k, 1]) & keys[k, 2]
            if other:
                return -1, i
            begin = ends[j]
            i += widths[j]
            end, value = _short(words, i, powers)
            if end == 0:  # `_number` comes second, because a call with its further arrays is slower
                end, value = _number(text, i, powers, fives)
                if end < 0:
                    return -1, i
            i = end
            out[row, order[j]] = value
        i = _blank(text, i)
        if i >= n or text[i] != 125:
            return -1, i
        row += 1
        i = _blank(text, i + 1)
        if i >= n or text[i] != 44:
            return row, i
        i = _blank(text, i + 1)
