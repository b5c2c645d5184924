"""Count the rows that answer yes to every question of a set, 64 rows at a time."""

from __future__ import annotations

import numpy as np

from trainer.kernels.bits import ctpop
from trainer.kernels.compiled import kernel


@kernel
def add_counts(words, depth, out):
    """Add to `out` int64 (sets,) the rows of `words` uint64 (questions, n/64) that answer yes to all questions of each set.

    The sets follow the empty one in the order of `trainer.counts.sets`. A pair without a row has no triple with one.
    """
    questions = words.shape[0]
    width = words.shape[1]
    pair_at = 1 + questions
    triple_at = pair_at + questions * (questions - 1) // 2
    both = np.empty(width, np.uint64)
    for a in range(questions):
        own = 0
        for w in range(width):
            own += ctpop(words[a, w])
        out[1 + a] += own
        if depth < 2:
            continue
        for b in range(a + 1, questions):
            own = 0
            for w in range(width):
                both[w] = words[a, w] & words[b, w]
                own += ctpop(both[w])
            out[pair_at] += own
            pair_at += 1
            if depth < 3:
                continue
            rest = questions - b - 1
            if own:
                for c in range(b + 1, questions):
                    own = 0
                    for w in range(width):
                        own += ctpop(both[w] & words[c, w])
                    out[triple_at + c - b - 1] += own
            triple_at += rest
