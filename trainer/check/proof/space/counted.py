"""Build the space of a model that was trained from counts.

See docs/proof-format.md, "Counts".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trainer.check.proof.model import Model, active_parameter, minimum_recalls, read_fraction, split_items
from trainer.check.proof.space.limits import forbidden_pairs
from trainer.check.proof.subject import CountedSets, NoProof, ProofSpace

MOST_QUESTIONS = 250  # with more questions, the sets of three are too many for a table of their places


def counted_space(model: Model, sets: CountedSets, asks: Sequence[int], digest: str) -> ProofSpace:
    """Build the space of a model over its counts.

    `asks` is the column of each question, as a position in the model document; `digest` is the SHA-256 of the counts. With costs, the
    classes of `sets` are answers, and their numbers savings. Raises NoProof if the format has no steps for these settings.
    """
    depth = int(model["parameters"]["depth"])
    min_leaf = int(active_parameter(model, "min_leaf") or 1)
    if depth > sets.depth:
        raise NoProof(f"the counts are of at most {sets.depth} questions, and the trees are of depth {depth}")
    if len(asks) > MOST_QUESTIONS:
        raise NoProof(f"there are {len(asks)} questions, and steps from counts have at most {MOST_QUESTIONS}")
    if active_parameter(model, "costs") and (min_leaf > 1 or minimum_recalls(model)):
        raise NoProof("savings of answers do not show the numbers of rows that a smallest leaf or a recall needs")
    totals = sets.numbers[:, 0]
    banned = set(split_items(active_parameter(model, "forbidden")))
    columns = np.array(asks, np.int64)
    allowed = np.array([column["name"] not in banned for column in model["columns"]], bool)[columns]
    most = active_parameter(model, "max_leaves")
    error_shares = [(model["classes"].index(name), 1 - read_fraction(share)) for name, share in minimum_recalls(model)]
    return ProofSpace(
        kind="questions",
        X=np.zeros((0, len(asks)), bool),
        labels=np.arange(len(totals), dtype=np.int32),
        weights=totals,
        classes=len(totals),
        depth=depth,
        penalty=read_fraction(model["certificate"].get("leaf_penalty") or "0") * int(totals.sum()),
        min_leaf=min_leaf,
        max_leaves=None if most is None else int(most),
        allowed=allowed,
        apart=forbidden_pairs(model, columns),
        digest=digest,
        columns=columns,
        recalls=tuple((k, math.floor(int(totals[k]) * wrong)) for k, wrong in error_shares),
        sets=sets,
    )
