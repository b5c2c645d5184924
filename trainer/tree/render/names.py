"""Shorten names so that they stay distinct."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainer.tree.render.palette import NAME_LENGTH, ClassStyle, distinct_styles, escape, short

LEGEND_LENGTH = 32  # letters of a class name in a legend, which has more room than a card
ALIKE = 6  # a common beginning or end is left out if it has at least this many letters
PIECES = re.compile(r"[^_\s.\-/]*[_\s.\-/]*")


def short_names(names: Sequence[str], length: int = NAME_LENGTH) -> list[str]:
    """Shorten names to about `length` letters; names that differ stay different.

    Long names with a common beginning or end lose it ("…region_14…"). Other long names lose their end, a
    single one its middle. If two would look the same, both keep more letters.
    """
    shortened = [_without_common(name, [n for n in names if n != name and len(n) > length], length) for name in names]
    for room in (length + 8, 2 * length, 4 * length, max(map(len, names), default=0)):
        twice = {s for s in shortened if shortened.count(s) > 1}
        if not twice:
            break
        shortened = [short(name, room) if s in twice else s for name, s in zip(names, shortened, strict=True)]
    return shortened


def named_styles(styles: Sequence[ClassStyle]) -> list[tuple[ClassStyle, list[int], str]]:
    """Return each style once, with its class codes and a short name, escaped for Plotly."""
    groups = distinct_styles(styles)
    names = short_names([style.name for style, _ in groups], LEGEND_LENGTH)
    return [(style, codes, escape(name)) for (style, codes), name in zip(groups, names, strict=True)]


def _without_common(name: str, others: Sequence[str], length: int) -> str:
    """Return `name` without the beginning and the end that it shares with the most similar names."""
    if len(name) <= length:
        return name
    head = max((_common(name, other) for other in others), default=0)
    tail = max((_common(name[::-1], other[::-1]) for other in others), default=0)
    if max(head, tail) < ALIKE:
        # distinct beginnings identify the names, so cut their ends; a single name is shortened in its middle, since its
        # end may matter
        return f"{name[: length - 1].rstrip(' _.-/')}…" if others else short(name, length)
    head = min(head, len(name))
    tail = min(tail, len(name) - head)
    start, end = sorted((_edge(name, head), len(name) - _edge(name[::-1], tail)))
    while True:  # add words before and behind as long as they fit
        before = _word_before(name, start)
        after = _word_after(name, end)
        if start > 0 and end - before + 2 <= length:
            start = before
        elif end < len(name) and after - start + 2 <= length:
            end = after
        else:
            break
    core = name[start:end].strip("_ ") if end > start else ""
    if not core:
        return short(name, length)
    opening = "…" if start > 0 else ""
    closing = "…" if end < len(name) else ""
    return opening + short(core, length) + closing


def _common(a: str, b: str) -> int:
    """Return the length of the common prefix of two names."""
    n = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        n += 1
    return n


def _edge(name: str, at: int) -> int:
    """Return the beginning of the word in which position `at` lies."""
    ends = [0]
    for piece in PIECES.findall(name):
        if ends[-1] + len(piece) > at or not piece:
            break
        ends.append(ends[-1] + len(piece))
    return ends[-1]


def _word_before(name: str, at: int) -> int:
    return _edge(name, at - 1) if at > 0 else 0


def _word_after(name: str, at: int) -> int:
    piece = PIECES.match(name, at)
    return max(at + 1, piece.end()) if piece else len(name)
