"""Count the rows that answer yes to all questions of a set.

The kernel counts 64 rows at a time.
"""

from __future__ import annotations

import numpy as np

from trainer.kernels.bits import ctpop
from trainer.kernels.compiled import kernel


@kernel
def add_counts(words, depth, out):
    """Count the rows that answer yes to all questions of each set; add the counts to `out`, int64 (sets,).

    `words` is uint64 (questions, n/64). The sets follow the empty one in the order of `trainer.counts.sets`.
    If no row answers yes to both questions of a pair, the triples with this pair are skipped.
    """
    questions = words.shape[0]
    width = words.shape[1]
    pair_at = 1 + questions
    triple_at = pair_at + questions * (questions - 1) // 2
    both = np.empty(width, np.uint64)
    for a in range(questions):
        pair_start = 0
        for w in range(width):
            pair_start += ctpop(words[a, w])
        out[1 + a] += pair_start
        if depth < 2:
            continue
        for b in range(a + 1, questions):
            pair_start = 0
            for w in range(width):
                both[w] = words[a, w] & words[b, w]
                pair_start += ctpop(both[w])
            out[pair_at] += pair_start
            pair_at += 1
            if depth < 3:
                continue
            remaining = questions - b - 1
            if pair_start:
                for c in range(b + 1, questions):
                    pair_start = 0
                    for w in range(width):
                        pair_start += ctpop(both[w] & words[c, w])
                    out[triple_at + c - b - 1] += pair_start
            triple_at += remaining
