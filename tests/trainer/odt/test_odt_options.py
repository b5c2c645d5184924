"""Every option of odt equals brute force, in the search and two solvers (see `benchmarks/odt_brute.py`)."""

from __future__ import annotations

import pytest

from tests.trainer.odt.options import OPTIONS, applies, check, instance

CASES = [(option, solver) for option in OPTIONS for solver in ("search", "scip", "gurobi") if applies(option, solver)]


@pytest.mark.slow
@pytest.mark.parametrize(("option", "solver"), CASES)
def test_equals_brute_force(option, solver):
    for seed in range(1000, 1003 if option == "topology=auto" else 1008):
        problem, topology, settings = instance(option, seed)
        check(problem, solver, topology, settings)


def test_a_class_weight_counts_in_the_tests_above_the_leaves():
    """Reading the solver's tree by unweighted counts lost two of its 27 units."""
    problem, topology, settings = instance("negative_weight", 59)
    for solver in ("scip", "highs"):
        check(problem, solver, topology, settings)
