"""List the methods.

A new method is a file in a family, and a line here.
"""

from __future__ import annotations

from trainer.errors import ParameterError
from trainer.families.bivariate import method as bivariate
from trainer.families.exact import method as exact
from trainer.families.greedy import cart, oc1
from trainer.families.local import method as local_search
from trainer.families.mip import bendoct, bendoct_accelerated, binoct, flowoct, oct
from trainer.families.numeric import method as exact_numeric
from trainer.families.oblique import cut_h, cutw_h, oct_h, s_oct
from trainer.families.odt import method as odt
from trainer.methods.base import Method
from trainer.methods.capabilities import Role

METHODS: tuple[Method, ...] = (
    cart.METHOD,
    oc1.METHOD,
    bivariate.METHOD,
    local_search.METHOD,
    exact.METHOD,
    exact_numeric.METHOD,
    flowoct.METHOD,
    bendoct.METHOD,
    oct.METHOD,
    binoct.METHOD,
    bendoct_accelerated.METHOD,
    odt.METHOD,
    cut_h.METHOD,
    cutw_h.METHOD,
    s_oct.METHOD,
    oct_h.METHOD,
)


def get(method_id: str) -> Method:
    """Return the method with this id.

    Parameters
    ----------
    method_id : str
        Id of a method, such as "cart".

    Returns
    -------
    Method

    Raises
    ------
    ParameterError
        If there is no such method; the message lists the known ids.
    """
    for method in METHODS:
        if method.id == method_id:
            return method
    ids = ", ".join(method.id for method in METHODS)
    raise ParameterError({"method": f"'{method_id}' is not a method. Known: {ids}."})


def method_for(role: Role) -> Method:
    """Return the method that has a role."""
    return next(method for method in METHODS if role in method.roles)


def editable_ids() -> tuple[str, ...]:
    """Return the ids of the methods whose trees can be edited in the workbench."""
    return tuple(method.id for method in METHODS if method.workbench is not None)


def precompiled_ids() -> tuple[str, ...]:
    """Return the ids of the methods that have compiled kernels of their own, the default of forms first."""
    methods = sorted(METHODS, key=lambda method: Role.ONE_PROVED not in method.roles)
    return tuple(method.id for method in methods if method.precompile)
