"""Define badges of claims, job states and review states."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.training.claims import SPLITS_TIP, SUBTREES_TIP

UNFINISHED_TIP = "The search ended, or is still going, before the proof was complete. A better tree may exist, but not better than the bound."
HEURISTIC_TIP = "Built step by step. Nothing is claimed about how close the whole tree is to the best one."

# kind of claim → style and icon
LOOK = {
    "proved": ("proved", "check"),
    "wishes": ("gap", "check"),
    "gap": ("gap", "half"),
    "heuristic": ("heur", "dashed"),
    "damaged": ("bad", "dashed"),
}


@dataclass(frozen=True)
class Badge:
    """Style, icon, text and tooltip of a badge."""

    style: str
    icon: str
    words: str
    tip: str = ""


STATES = {
    "can_prove": Badge(
        "proved", "check", "Can prove the whole tree",
        "If it runs to its end, this method proves that no tree of its search space is better.",
    ),
    "can_prove_splits": Badge("heur", "check", "Proves each split", SPLITS_TIP),
    "can_prove_subtrees": Badge("heur", "check", "Proves small subtrees", SUBTREES_TIP),
    "queued": Badge("plain", "", "Queued", "Waits for a free worker."),
    "running": Badge("run", "pulse", "Running", "The best tree so far is kept if you stop."),
    "succeeded": Badge("plain", "check", "Finished", "It has ended, and its result is stored."),
    "failed": Badge("bad", "", "Failed", "The run ended without a tree; the reason is on its page."),
    "unreachable": Badge(
        "gap", "check", "Not reachable",
        "Proved: no tree of the search space keeps these constraints. The page of the run says what can be reached instead.",
    ),
    "cancelled": Badge("plain", "", "Stopped", "Stopped by request; the best tree found by then, if any, is kept."),
    "draft": Badge("plain", "", "Draft", "Not approved yet: only its owner and administrators can call it."),
    "in_review": Badge("run", "", "In review", "Waits for an administrator."),
    "approved": Badge("proved", "check", "Approved", "Everyone with a token can call it by its id."),
    "served": Badge("proved", "", "Served", "Its name answers with this version."),
    "rejected": Badge("bad", "", "Rejected", "An administrator gave a reason; see the history."),
    "retired": Badge("plain", "", "Retired", "Not served any more."),
}  # fmt: skip


def claim(kind: str, words: str, tip: str) -> Badge:
    """Return the badge of a claim, styled by its kind."""
    return Badge(*LOOK[kind], words, tip)
