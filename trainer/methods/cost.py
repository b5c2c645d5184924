"""Estimate the time and memory of a fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

START_SECONDS = 0.3  # part of the estimate that does not depend on the problem
WIDTH = 1.28  # half-width of the interval in standard deviations; it contains four runs in five
PROGRAM_MEGABYTES = 300  # memory of the program without data
SOLVER_MEGABYTES = 75  # additional memory of methods that solve mixed-integer programs
ASSUMED_DEPTH = 5  # assumed for a search without a depth limit, since it proves this depth first
CELL_BYTES = 100.0  # bytes per cell while a table is read, when it exists as text and as numbers


@dataclass(frozen=True, kw_only=True)
class ProblemSize:
    """Size of a problem: rows n, columns p, binary features F, classes K and depth d."""

    n: int
    p: int
    F: int
    K: int
    d: int


def _no_bytes(size: ProblemSize) -> float:
    return 0.0


@dataclass(frozen=True, kw_only=True)
class CostModel:
    """A rough model of the cost of one fit.

    Parameters
    ----------
    seconds : callable
        Processor seconds of the search by `ProblemSize`, without START_SECONDS.
    spread : float
        Error of the model, as a standard deviation in decades.
    search_bytes : callable
        Bytes that the search needs in addition to the table and its features, by `ProblemSize`.
    integer_program : bool
        Whether fits are mixed-integer programs, which often take all of their time.
    unmodelled : tuple of str
        Parameters that make the search longer than `seconds` estimates.
    """

    seconds: Callable[[ProblemSize], float]
    spread: float = 1.0
    search_bytes: Callable[[ProblemSize], float] = _no_bytes
    integer_program: bool = False
    unmodelled: tuple[str, ...] = ()


def upper_seconds(cost: CostModel, size: ProblemSize) -> float:
    """Return the upper end of the expected seconds of a fit."""
    return float((START_SECONDS + cost.seconds(size)) * 10 ** (WIDTH * cost.spread))


def _search_seconds(size: ProblemSize, unit: float) -> float:
    """Estimate the seconds of a search whose time grows with the number of split combinations."""
    return unit * size.n * size.F * 6.0 ** (2 * max(1, size.d) - 2)


def _model_bytes(size: ProblemSize) -> float:
    """Return the bytes of the rows of a mixed-integer model."""
    return 400.0 * size.n * 2 ** (min(size.d, 8) + 1)


def _default_seconds(size: ProblemSize) -> float:
    return _search_seconds(size, 1e-4)


def _hyperplane_seconds(size: ProblemSize) -> float:
    return _search_seconds(size, 3e-5)


UNKNOWN_COST = CostModel(seconds=_default_seconds)
INTEGER_PROGRAM = CostModel(seconds=_default_seconds, search_bytes=_model_bytes, integer_program=True)
HYPERPLANE_PROGRAM = CostModel(seconds=_hyperplane_seconds, search_bytes=_model_bytes, integer_program=True)
