"""Find the best tree under wishes from counts, with prices and conflicts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from trainer.counts.folder import Counts
from trainer.counts.limits import completer_of
from trainer.counts.objective import counted_objective
from trainer.counts.proof import proof_lines
from trainer.counts.space import CountedSpace
from trainer.counts.train import (
    CountedTree,
    certify_counts,
    counted_settings,
    counted_tree,
    gain_of,
    setting_names,
    tree_of,
    tree_search,
)
from trainer.editing.complete import Completion, QuestionPrice, check_conflict
from trainer.editing.wishes import parse_all
from trainer.editing.words import check_reasons
from trainer.errors import InfeasibleError, ParameterError, SolverError
from trainer.methods.monitor import Monitor
from trainer.solver_common.problem_setup import limits_of
from trainer.training.claims import read_claim
from trainer.training.proof_file import MAX_PROOF_BYTES, write_lines
from trainer.tree.file import ModelFile
from trainer.tree.nodes import Tree
from trainer.tree.shapes import LabelledShape

STOPPED = "The search was stopped before it found the best tree with these wishes. Give it more time."


class CountedSession:
    """A workbench on counts. Later steps reuse the results of earlier ones. Not thread-safe.

    Parameters
    ----------
    counts : Counts
    parameters : Mapping, optional
        Settings as for `train_counts`.
    name : str
        A name for the model files.

    Raises
    ------
    ParameterError
        If a setting needs more than the counts have, or numbers of the counts are secret.
    """

    def __init__(self, counts: Counts, parameters: Mapping[str, Any] | None = None, *, name: str = "") -> None:
        self.counts = counts
        self.name = name
        self.settings = counted_settings(parameters or {}, asked=counts.questions.asked, depth=counts.depth)
        if counts.suppress:
            raise ParameterError(
                {"suppress": "small numbers of these counts are secret, so wishes have no exact price."}
            )
        names = setting_names(counts)
        total = counts.total[0]
        self.objective = counted_objective(self.settings, names, total[:, 0], rows=counts.rows, suppressed=False)
        within = tree_search(counts, self.settings, total, total, self.objective.gains)
        self.space = CountedSpace(counts, self.settings, replace(within, apart=None), self.objective)
        self.completer = completer_of(self.space, within, self.settings)

    def monitor(self) -> Monitor:
        """Return a monitor with the limits of one step, which begin now."""
        return Monitor(limits_of(self.settings))

    def complete(
        self,
        wishes: Sequence[str],
        monitor: Monitor | None = None,
        *,
        reasons: Mapping[str, str] | None = None,
        proof: Path | None = None,
        proof_size: int = MAX_PROOF_BYTES,
    ) -> CountedTree:
        """Find the best tree that keeps the wishes, with the price of each wish; `complete_counts` lists the errors.

        Raises SolverError, too, if the search was stopped.
        """
        start = time.monotonic()
        texts = parse_all(wishes, self.space.questions)
        reason_texts = check_reasons(reasons or {}, [wish.text for wish in texts])
        self._begin(monitor)
        completion = self.completer.complete(texts)
        check_conflict(completion)
        if self.space.stopped() and not completion.optimal:
            raise SolverError(STOPPED)
        if not completion.found:
            raise InfeasibleError(
                f"No tree has {self.settings['min_leaf']} rows or more in each leaf. Set a lower min_leaf."
            )
        tree = self.tree(completion.tree)
        certificate = certify_counts(self.counts, self.settings, tree, self.objective, time.monotonic() - start)
        if proof is not None:
            written = self._write_proof(tree, proof, proof_size)
            certificate = replace(certificate, evidence=(*certificate.evidence, written))
        record = self._wish_record(completion, reason_texts)
        counted = counted_tree(
            self.counts, self.settings, tree, self.objective, certificate, claim=record, name=self.name
        )
        price = read_claim(counted.model.certificate).price_rows
        return replace(counted, summary=counted.summary | record | {"price_rows": price})

    def _begin(self, monitor: Monitor | None) -> None:
        if monitor is None:
            self.space.begin(self.settings["time_limit"], None)
        else:
            self.space.begin(monitor.remaining(), monitor.stopped)

    def tree(self, shape: LabelledShape) -> Tree:
        """Convert (question, left, right) to a tree with the counts of every node."""
        return tree_of(self.space.as_counted(shape), self.counts, self.objective)

    def _write_proof(self, tree: Tree, proof: Path, size: int) -> dict[str, Any]:
        gain = gain_of(tree, self.objective)
        lines = partial(proof_lines, self.counts, self.settings, self.objective, gain, tree.n_leaves, within=True)
        return write_lines(proof, lines, size)

    def prove(self, model: ModelFile, proof: Path) -> dict[str, Any]:
        """Write the proof of a completion of this session, given its file; return the record of `write_lines`."""
        return self._write_proof(model.tree, proof, MAX_PROOF_BYTES)

    def price_list(self, place: str, wishes: Sequence[str], monitor: Monitor) -> Iterator[QuestionPrice]:
        """Yield the price of each counted question at a place of the best tree with the wishes.

        Raises ParameterError if the tree does not have the place.
        """
        texts = parse_all(wishes, self.space.questions)
        self._begin(monitor)
        tree = self.completer.complete(texts, prices=False).tree
        word = "" if place == "root" else place
        try:
            self.completer.spot(texts, tree, word)
        except KeyError:
            raise ParameterError(
                {
                    "place": f"the tree has no place '{place[:40]}'. Write 'root', or the answers from the root as in 'yn'."
                }
            ) from None
        return self.completer.price_list(texts, tree, word)

    @property
    def unit(self) -> str:
        """The unit of prices: rows, or the unit of the costs."""
        costs = self.objective.costs
        return "rows" if costs is None else costs.matrix.unit or "costs"

    def price_record(self, price: Fraction) -> dict[str, float]:
        """Convert a price from gain to a share of the objective, and to rows or the unit of the costs."""
        share = float(price / self.objective.total)
        costs = self.objective.costs
        return {"price": share} | ({"rows": float(price)} if costs is None else {"cost": costs.in_unit(price)})

    def _wish_record(self, completion: Completion, reasons: Mapping[str, str]) -> dict[str, Any]:
        """Return the members of the certificate about wishes: their prices as shares, and the optimum without them."""
        optimum = completion.optimum
        assert optimum is not None
        total = self.objective.total
        wishes = [
            {"wish": priced.wish.text, "price": None if priced.price is None else float(priced.price / total)}
            | ({"reason": reasons[priced.wish.text]} if priced.wish.text in reasons else {})
            for priced in completion.prices
        ]
        ends: dict[str, Any] = {"objective": float(1 - optimum.cost / total), "bound": float(1 - optimum.bound / total)}
        ends["proved"] = optimum.cost == optimum.bound
        if (costs := self.objective.costs) is not None:
            ends["objective_cost"] = costs.in_unit(total)
        return {"wishes": wishes, "optimum": ends}


def complete_counts(
    counts: Counts,
    wishes: Sequence[str],
    parameters: Mapping[str, Any] | None = None,
    *,
    reasons: Mapping[str, str] | None = None,
    name: str = "",
    proof: Path | None = None,
    proof_size: int = MAX_PROOF_BYTES,
) -> CountedTree:
    """Find the best tree that keeps the wishes, with the price of each wish.

    Parameters
    ----------
    counts : Counts
    wishes : sequence of str
        Constraints as text, such as "ask root age <= 50" (docs/argue.md), over counted questions.
    parameters : Mapping, optional
        Settings as for `train_counts`.
    reasons : Mapping, optional
        Reasons of the user, by the text of the wish.
    name : str
        A name for the model file.
    proof : Path, optional
        File for the proof of the bound, of at most `proof_size` bytes.

    Raises
    ------
    ParameterError
        If a wish or a setting needs more than the counts have, or numbers of the counts are secret.
    ConflictError
        If no tree keeps all wishes.
    InfeasibleError
        If no tree satisfies the settings.
    """
    session = CountedSession(counts, parameters, name=name)
    return session.complete(wishes, reasons=reasons, proof=proof, proof_size=proof_size)
