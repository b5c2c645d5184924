"""What badges say and how they look, decided once: claims about trees, states of jobs, steps of the review."""

from __future__ import annotations

from dataclasses import dataclass

PROVED, NO_BOUND, HEURISTIC = "Proved optimal", "No bound", "Heuristic"
PROVED_TIP = "No tree of the search space has a better objective: bound and objective agree."
TRAINING_ROWS = "This is about the training rows, not about new ones."
UNFINISHED_TIP = "The search ended, or is still going, before the proof was complete. A better tree may exist, but not better than the bound."
SPLITS_TIP = "Each split is the best possible for the rows that reach it. That does not make the whole tree optimal."
HEURISTIC_TIP = "Built step by step. Nothing is claimed about how close the whole tree is to the best one."

# style and icon of what is claimed
LOOK = {
    "proved": ("proved", "check"),
    "gap": ("gap", "half"),
    "heuristic": ("heur", "dashed"),
    "damaged": ("bad", "dashed"),
}


@dataclass(frozen=True)
class Badge:
    """Style and icon, the words that are shown, and the sentence that explains them."""

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
    """A badge with the look of its claim."""
    return Badge(*LOOK[kind], words, tip)


def proved_tip(scope: str = "") -> str:
    """What "proved optimal" means; `scope` names the trees that were searched."""
    return f"{PROVED_TIP} {TRAINING_ROWS}{scope_words(scope)}"


def scope_words(scope: str) -> str:
    """The trees that a claim is about, to put behind its sentence."""
    return f" Scope: {scope.rstrip('.')}." if scope else ""


def gap_words(gap: str) -> str:
    """The gap as text with its unit, or that there is none."""
    return f"Gap {gap}" if gap else NO_BOUND


def splits_words(proved: int, total: int) -> str:
    """How many splits of a tree are proved."""
    return f"{proved} of {total} splits proved"


def splits_badge(proved: int, total: int) -> Badge:
    """The badge of a tree with splits that are proved one by one."""
    return claim("proved" if proved == total else "gap", splits_words(proved, total), SPLITS_TIP)
