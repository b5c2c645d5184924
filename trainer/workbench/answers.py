"""Answer the steps of a workbench: completions, proofs, prices and good trees."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from trainer.certificate import Status
from trainer.editing.complete import ConflictError, QuestionPrice
from trainer.editing.questions import Questions
from trainer.errors import SolverError
from trainer.methods.monitor import Monitor
from trainer.training.proof_file import ProofLimits
from trainer.tree.file import from_json
from trainer.tree.nodes import Tree
from trainer.workbench.good_trees import good_request
from trainer.workbench.requests import WorkbenchSession
from trainer.workbench.spreads import spreads

PROOF_LIMITS = ProofLimits(seconds=60.0)  # the command line can write longer proofs, as after a training
PARTIAL_SECONDS = 0.25  # time between two pieces of a price list
Emit = Callable[[dict[str, Any]], None]


def answer(
    session: WorkbenchSession, base: Tree | None, step: dict[str, Any], monitor: Monitor, partial: Emit, folder: Path
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the result of a step and, for a completion, the model file; write proofs to the folder. Raise TrainerError."""
    if step["kind"] == "complete":
        return complete(session, base, step["wishes"], monitor, step["request"].get("reasons"))
    if step["kind"] == "proof":
        return session.prove(from_json(step["tree"]), folder / proof_name(step["step"]), monitor, PROOF_LIMITS), None
    if step["kind"] == "prices":
        return prices(session, step["wishes"], str(step["request"].get("place", "root")), monitor, partial), None
    request = good_request(step["request"])
    agrees = from_json(step["tree"]).tree if step.get("tree") else None
    return session.good_trees(request, monitor, agrees, partial), None


def proof_name(step: int) -> str:
    """Return the file name of the proof of a step, in the folder of the session."""
    return f"proof-{step}.jsonl.gz"


def complete(
    session: WorkbenchSession,
    base: Tree | None,
    wishes: list[str],
    monitor: Monitor,
    reasons: dict[str, str] | None = None,
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Find the best tree with the wishes, and compare it with `base`, the version where editing began."""
    completion = session.complete(wishes, monitor)
    try:
        result = session.result(completion, monitor, reasons=reasons)
    except ConflictError as error:
        return {"status": "infeasible", "conflict": list(error.conflict), "reason": completion.reason}, None
    except SolverError as error:
        return {"status": "stopped", "reason": str(error)}, None
    record = dict(result.summary)
    record.pop("metrics", None)  # hide the accuracy on held-out rows while the user edits
    record["seconds"] = monitor.elapsed()
    if base is not None:
        record["changes"] = changes(session, base, result.tree)
    record["spreads"] = spreads(session, result.tree)
    return record, result.model.to_json()


def changes(session: WorkbenchSession, base: Tree, tree: Tree) -> dict[str, Any]:
    """Count the training rows whose answer differs from that of `base`, by actual class."""
    problem = session.problem
    same = base.schema == problem.table.schema and base.classes == problem.labels.classes
    if not same:
        return {"rows": None, "why": "The version has other columns or classes."}
    before = base.predict(problem.matrix)
    after = tree.predict(problem.matrix)
    y = problem.y
    moved = before != after
    classes = problem.labels.classes
    lines = []
    for actual, a, b in np.unique(np.column_stack((y, before, after))[moved], axis=0).tolist():
        rows = moved & (y == actual) & (before == a) & (after == b)
        lines.append({"actual": classes[actual], "from": classes[a], "to": classes[b], "rows": int(rows.sum())})
    right = int((moved & (after == y)).sum())
    wrong = int((moved & (before == y)).sum())
    return {"rows": int(moved.sum()), "now_right": right, "now_wrong": wrong, "by_class": lines}


class Priced(Protocol):
    """A workbench whose prices have a unit."""

    @property
    def unit(self) -> str: ...

    def price_record(self, price: Fraction) -> dict[str, float]: ...


def prices(session: WorkbenchSession, wishes: list[str], place: str, monitor: Monitor, partial: Emit) -> dict[str, Any]:
    """Return the price of each question at a place, cheapest first; pass pieces to `partial` during the search."""
    listed = session.price_list(place, wishes, monitor)
    has_costs = session.problem.costs is not None
    return price_record(session, session.bench.space.questions, place, listed, monitor, partial, has_costs=has_costs)


def price_record(
    session: Priced,
    questions: Questions,
    place: str,
    prices: Iterable[QuestionPrice],
    monitor: Monitor,
    partial: Emit,
    *,
    has_costs: bool,
) -> dict[str, Any]:
    """Return the record of a price list. With costs, rows are copied, so their errors have no meaning and are left out."""
    unit = session.unit
    records: list[dict[str, Any]] = []
    last_partial = time.monotonic()
    for price in prices:
        records.append(
            {
                "question": questions.text(price.question),
                "wish": f"ask {place} {questions.wish(price.question)}",
                "column": questions.column_name(price.question),
                **session.price_record(price.price),
                "proved": price.proved,
                "errors": None if has_costs else price.errors,
                "leaves": price.leaves,
            }
        )
        if time.monotonic() - last_partial > PARTIAL_SECONDS:
            last_partial = time.monotonic()
            partial({"place": place, "unit": unit, "prices": _by_price(records), "complete": False})
    stopped = monitor.reason is not None and monitor.reason is not Status.OPTIMAL
    return {"place": place, "unit": unit, "prices": _by_price(records), "complete": not stopped}


def _by_price(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(records, key=lambda p: (not p["proved"], p["price"]))
