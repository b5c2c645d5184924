"""Short names that can still be distinguished: the common part of long names is left out first."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainer.tree.render.palette import NAME_LENGTH, ClassStyle, distinct_styles, escape, short

LEGEND_LENGTH = 32  # letters of the name of a class in a legend, which stands beside others and not in a small card
ALIKE = 6  # letters that names share at their beginning or end before that part is left out
PIECES = re.compile(r"[^_\s.\-/]*[_\s.\-/]*")


def short_names(names: Sequence[str], length: int = NAME_LENGTH) -> list[str]:
    """`names` in at most about `length` letters, all different where they were.

    Of names that begin or end alike the common part is left out ("…region_14…"), since the middle tells them apart; others
    lose their middle. Where two would look the same, both keep more letters.
    """
    shortened = [_without_common(name, [n for n in names if n != name and len(n) > length], length) for name in names]
    for room in (length + 8, 2 * length, 4 * length, max(map(len, names), default=0)):
        twice = {s for s in shortened if shortened.count(s) > 1}
        if not twice:
            break
        shortened = [short(name, room) if s in twice else s for name, s in zip(names, shortened, strict=True)]
    return shortened


def named_styles(styles: Sequence[ClassStyle]) -> list[tuple[ClassStyle, list[int], str]]:
    """Each style once, with the class codes it stands for and a short name that Plotly shows as it is."""
    groups = distinct_styles(styles)
    names = short_names([style.name for style, _ in groups], LEGEND_LENGTH)
    return [(style, codes, escape(name)) for (style, codes), name in zip(groups, names, strict=True)]


def _without_common(name: str, others: Sequence[str], length: int) -> str:
    """`name` without the beginning and the end that the names most like it have, too."""
    if len(name) <= length:
        return name
    head = max((_common(name, other) for other in others), default=0)
    tail = max((_common(name[::-1], other[::-1]) for other in others), default=0)
    if max(head, tail) < ALIKE:
        # names that begin differently are read from their beginning; one alone may tell more at its end
        return f"{name[: length - 1].rstrip(' _.-/')}…" if others else short(name, length)
    head, tail = min(head, len(name)), min(tail, len(name) - min(head, len(name)))
    start = _edge(name, head)
    end = len(name) - _edge(name[::-1], tail)
    start, end = min(start, end), max(start, end)
    while True:  # as much of what is before and behind as there is room for, whole words first
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
    return f"{'…' if start > 0 else ''}{short(core, length)}{'…' if end < len(name) else ''}"


def _common(a: str, b: str) -> int:
    """Return the length of the common prefix of two names."""
    n = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        n += 1
    return n


def _edge(name: str, at: int) -> int:
    """The beginning of the word in which position `at` lies."""
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
