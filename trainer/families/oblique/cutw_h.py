"""Declare the method CUT_w-H: CUT-H with one path row per leaf (Alston, Validi & Hicks)."""

from __future__ import annotations

from dataclasses import replace

from trainer.data.problem import Problem
from trainer.families.oblique import cut_h
from trainer.methods.base import Settings, Solution
from trainer.methods.capabilities import Group
from trainer.methods.monitor import Monitor


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Solve with the rows of CUT_w-H."""
    return cut_h.solve_with(problem, settings, monitor, weak=True)


METHOD = replace(
    cut_h.METHOD,
    id="cutw-h",
    title="CUT_w-H",
    summary="CUT-H with its weaker rows: one for each leaf instead of one for each subtree.",
    paper="Alston, Validi & Hicks, CUT_w-H",
    solve=solve,
    good_for="Only for comparing with published papers.",
    estimator="CutwHClassifier",
    precompile=(),  # `cut-h` already compiles these kernels
    group=Group.BASELINES,
    roles=(),
    candidates=(),
)
