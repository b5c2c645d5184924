"""Define the abstract back end and the capabilities of solvers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from trainer.errors import SolverError
from trainer.milo.exchange import Exchange
from trainer.milo.hooks import Hooks, Outcome, SolveOptions, Termination
from trainer.milo.model import BuildStopped, IntegerProgram


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """Features that a back end supports natively. Others are emulated by a documented loop, or raise an error.

    `lazy`: rows at integral points inside the search; without it the back end solves, separates and solves again.
    `fractional`: `on_fractional` at the nodes of the search; without it at the root relaxation only.
    `propose`, `start`: incumbents from the method during and before the search. `interrupt`: stops within about a second.
    `max_size`: the largest number of variables and of base rows; None: no limit.
    """

    lazy: bool
    fractional: bool
    propose: bool = True
    start: bool = True
    interrupt: bool = True
    max_size: int | None = None


class Backend(ABC):
    """A solver that maximises an `IntegerProgram` under `Hooks` and `SolveOptions`."""

    name: str
    capabilities: Capabilities

    @property
    @abstractmethod
    def version(self) -> str:
        """The solver's own version."""

    def solve(self, model: IntegerProgram, hooks: Hooks | None = None, options: SolveOptions | None = None) -> Outcome:
        """Maximise the model.

        Parameters
        ----------
        model : IntegerProgram
        hooks : Hooks, optional
            Callbacks of the method. An exception in one ends the solve and is raised here.
        options : SolveOptions, optional
            Limits, tolerances and start points.

        Returns
        -------
        Outcome
            The best accepted point and a valid bound, also after a limit.

        Raises
        ------
        SolverError
            If the model is too large for the licence, or the solver contradicts itself.
        """
        limit = self.capabilities.max_size
        if limit is not None and max(model.size, len(model.rows)) > limit:
            raise SolverError(
                f"The problem has {model.size} variables and {len(model.rows)} rows, but this licence of {self.name} takes at "
                f"most {limit} of each. Choose solver=scip, or install a full licence."
            )
        exchange = Exchange(model, hooks or Hooks(), options or SolveOptions())
        if exchange.options.time is not None and exchange.options.time <= 0:
            return self._outcome(exchange, Termination.TIME)
        try:
            ended = self._solve(exchange)
        except BuildStopped:  # the run was stopped before the solver started
            ended = Termination.CANCELLED if exchange.cancelled else Termination.TIME
        if exchange.error is not None:
            raise exchange.error
        return self._outcome(exchange, ended)

    @abstractmethod
    def _solve(self, exchange: Exchange) -> Termination:
        """Run the solver; the exchange collects incumbent, bound and counts."""

    def _outcome(self, exchange: Exchange, ended: Termination) -> Outcome:
        best = exchange.best
        objective = None if best is None else exchange.model.value(best)
        bound = exchange.bound
        if objective is not None and bound < objective:
            if bound < objective - 1e-4 * max(1.0, abs(objective)):
                raise SolverError(
                    f"{self.name} reported an inconsistent result: the bound {bound} is below its own solution {objective}. "
                    "The result was discarded. Train again with another solver or seed, or report this model."
                )
            bound = objective
        return Outcome(
            ended=ended,
            values=best,
            objective=objective,
            bound=bound,
            nodes=exchange.nodes,
            seconds=exchange.elapsed(),
            hook_seconds=exchange.hook_seconds,
            rows=dict(exchange.counts),
            proposed=exchange.proposed,
            accepted=exchange.accepted,
            solver=self.name,
            version=self.version,
        )
