"""Rows of a JSON body straight into a matrix: `{"rows": [{"a": 1, "b": 2.5}, ...]}` in one pass, without an object for a cell.

Only bodies of the most frequent form are read here: every row is written like the first one, and every cell is a number.
All others are None, and the general parser looks at them. A number with few digits and a small exponent is the quotient or product of
two exact doubles (Clinger 1990, "How to read floating point numbers accurately"); others are rounded as in Lemire 2021, "Number
parsing at a gigabyte per second", and the rest by C's `strtod`. All three round correctly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import orjson
from numba import njit, types

from trainer.dtypes import FloatArray

HEAD = re.compile(rb'\s*\{\s*"rows"\s*:\s*\[\s*')
CELL = re.compile(rb"[-+.0-9eE]*")
TAIL = re.compile(rb"\s*\]\s*\}\s*\Z")
POWERS = 10.0 ** np.arange(23)  # exact doubles
TWOS = 2.0 ** np.arange(-1075.0, 972.0)  # by exponent of a double with a mantissa that is a whole number
LARGEST = np.uint64(2**53)  # up to which whole numbers are exact doubles
SMALLEST = 290  # exponents of ten, either way, for which `_rounded` needs no care for tiny and infinite results
LOW, HALF, ONES = np.uint64(2**32 - 1), np.uint64(32), np.uint64(2**64 - 1)


def _fives() -> np.ndarray:
    """By exponent of ten: the first 128 bits of its power of five, as two uint64; rounded down, below zero up (Lemire 2021)."""
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

# of C's library: an address and nothing for the end; what stands behind a number ends it
_strtod = types.ExternalFunction("strtod", types.float64(types.intp, types.intp))


def rows_matrix(content: bytes, names: Sequence[str], most: int) -> FloatArray | None:
    """The cells of all rows, float64 (n, columns in the order of `names`); None where a closer look is needed, or above `most` rows."""
    head = HEAD.match(content)
    if head is None or not names:
        return None
    first = _first_row(content, head.end())
    place = {name: j for j, name in enumerate(names)}
    if first is None or first.keys() != place.keys():
        return None
    text = np.frombuffer(content, np.uint8)
    rows = int(np.count_nonzero(text[head.end() :] == ord("{")))
    if rows > most:
        return None
    keys = _before_cells(content, head.end(), list(first))
    if keys is None:
        return None
    ends = np.cumsum([len(key) for key in keys])
    order = np.array([place[name] for name in first])
    out = np.empty((rows, len(names)))
    found, end = _read(text, head.end(), np.frombuffer(b"".join(keys), np.uint8), ends, order, POWERS, FIVES, out)
    if found < 1 or TAIL.match(content, end) is None:
        return None
    return out[:found]


def _first_row(content: bytes, start: int) -> dict[str, object] | None:
    """The first row, which tells the order of the columns; plain rows have no brace within."""
    try:
        row = orjson.loads(content[start : content.index(b"}", start) + 1])
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _before_cells(content: bytes, start: int, names: Sequence[str]) -> list[bytes] | None:
    """What stands before each cell of the first row: brace or comma, name and colon, white space as it is."""
    found, at = [], start
    for name in names:
        match = re.compile(rb"\s*[{,]\s*" + re.escape(orjson.dumps(name)) + rb"\s*:\s*").match(content, at)
        if match is None:
            return None
        found.append(match[0])
        at = CELL.match(content, match.end()).end()  # type: ignore[union-attr]
    return found


@njit(cache=True, nogil=True)
def _blank(text, i):
    """The next place that is no white space; every caller checks that it lies within the text."""
    while i < len(text) and (text[i] == 32 or text[i] == 10 or text[i] == 13 or text[i] == 9):
        i += 1
    return i


@njit(cache=True, nogil=True)
def _digits(text, i, value, room):
    """Behind the digits from `i` on: the place, their value appended to `value`, how many more digits fit (negative: too many)."""
    while i < len(text) and text[i] >= 48 and text[i] <= 57:
        if room > 0:
            value = value * np.uint64(10) + np.uint64(text[i] - 48)
        if value > 0 or room <= 0:
            room -= 1
        i += 1
    return i, value, room


@njit(cache=True, nogil=True)
def _short(text, i, powers):
    """What most numbers are, up to 15 digits and a point: the place behind it and its value; 0 for all others."""
    value, point, k, n = 0, 0, i, min(len(text), i + 16)
    while k < n:
        digit = np.int64(text[k]) - 48
        if digit >= 0 and digit <= 9:
            value = value * 10 + digit
        elif digit == -2 and point == 0:
            point = k
        else:
            break
        k += 1
    if k >= n or k == i or text[k] == 101 or text[k] == 69 or text[k] == 46 or point == i or point == k - 1:
        return 0, 0.0
    if text[i] == 48 and k > i + 1 and point != i + 1:
        return 0, 0.0  # no number begins with a zero and another digit
    return k, value / powers[k - point - 1] if point else np.float64(value)


@njit(cache=True, nogil=True)
def _number(text, i, powers, fives):
    """The JSON number at `i`: the place behind it (-1: there is none) and its value."""
    start, n = i, len(text)
    negative = i < n and text[i] == 45
    if negative:
        i += 1
    end, short = _short(text, i, powers)
    if end > 0:
        return end, -short if negative else short
    if i >= n or text[i] < 48 or text[i] > 57:
        return -1, 0.0
    if text[i] == 48 and i + 1 < n and text[i + 1] >= 48 and text[i + 1] <= 57:
        return -1, 0.0  # no number begins with a zero and another digit
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
    if room >= 0 and value <= LARGEST and exponent >= -22 and exponent <= 22:
        found = np.float64(value) * powers[exponent] if exponent >= 0 else np.float64(value) / powers[-exponent]
    elif room >= 0:
        found = _rounded(value, exponent, fives)
    if found < 0.0:
        return i, _strtod(text.ctypes.data + start, 0)  # type: ignore[call-overload]
    return i, -found if negative else found


@njit(cache=True, nogil=True)
def _product(a, b):
    """The upper and the lower half of the product of two uint64."""
    a0, a1, b0, b1 = a & LOW, a >> HALF, b & LOW, b >> HALF
    middle = a1 * b0 + ((a0 * b0) >> HALF)
    other = a0 * b1 + (middle & LOW)
    return a1 * b1 + (middle >> HALF) + (other >> HALF), a * b


@njit(cache=True, nogil=True)
def _rounded(value, exponent, fives):
    """value * 10**exponent, correctly rounded; -1 where it takes more care. Lemire 2021, algorithm 1."""
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
        mantissa = mantissa & ~np.uint64(1)  # to the even one of the two doubles
    mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
    return np.float64(mantissa) * TWOS[power]


@njit(cache=True, nogil=True)
def _read(text, i, keys, ends, order, powers, fives, out):
    """Fill `out` from the rows that begin at `i`; returns their number (-1: not of the form) and the place behind the last one."""
    n, row = len(text), 0
    while True:
        if row >= len(out):
            return -1, i
        begin = 0
        for j in range(len(ends)):
            width, other = ends[j] - begin, np.uint8(0)
            if i + width >= n:
                return -1, i
            here, key = text[i : i + width], keys[begin : ends[j]]
            for k in range(width):  # without a way out, so that many bytes are compared at once
                other |= here[k] ^ key[k]
            if other:
                return -1, i
            begin = ends[j]
            i, value = _number(text, i + width, powers, fives)
            if i < 0:
                return -1, i
            out[row, order[j]] = value
        i = _blank(text, i)
        if i >= n or text[i] != 125:
            return -1, i
        row += 1
        i = _blank(text, i + 1)
        if i >= n or text[i] != 44:
            return row, i
        i = _blank(text, i + 1)
