"""Each side constraint is declared once, kept by every family that has it, and checked."""

from __future__ import annotations

import pytest

from trainer.check.recount.restrictions import SIDE
from trainer.constraints import CONSTRAINTS
from trainer.constraints.coupling import RULES
from trainer.errors import ParameterError
from trainer.families.exact.search import constraints as exact
from trainer.families.mip import side as mip
from trainer.milo import BACKENDS, backend
from trainer.registry import METHODS

COMPANIONS = {"fairness_column", "fairness_class", "fairness_delta"}  # they only say what `fairness` means
DECLARED = {p.name for p in CONSTRAINTS} - COMPANIONS


def test_the_formulations_keep_every_constraint():
    assert set(mip.KEEP) == DECLARED


def test_the_checker_counts_every_constraint_again():
    assert set(SIDE.split()) == {p.name for p in CONSTRAINTS}


def test_exact_search_enforces_its_declared_constraints():
    declared = {p.name for m in METHODS if m.id == "exact" for p in m.parameters} & DECLARED
    assert declared == DECLARED == {*exact.KEEP, *RULES, "max_leaves"}, "a limit of leaves alone needs no vectors"


@pytest.mark.parametrize("method", [m for m in METHODS if m.parameter("solver") is not None], ids=lambda m: m.id)
def test_the_solvers_of_a_method_are_those_of_the_table(method):
    assert set(method.parameter("solver").choices) - {"auto", "search"} == set(BACKENDS)


@pytest.mark.parametrize("name", sorted(set(BACKENDS) - {"gurobi"}))
def test_back_end_is_found_by_name(name):
    assert backend(name).name == name


def test_an_unknown_back_end_names_the_known_ones():
    with pytest.raises(ParameterError, match="scip, highs, gurobi"):
        backend("cplex")
