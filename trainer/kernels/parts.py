"""Kernels as parts of other kernels: code that is linked into a kernel that Python calls, and becomes machine code there only.

numba turns each function into machine code of its own, with a wrapper for Python, before it links it into the functions that call it.
It optimises the function again in each of them, and what these are linked into does so once more. Kernels of three or four levels are
common here, so that most of the time of compiling went into code that nobody runs. A part is optimised where it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import _dynfunc, njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.typed_passes import NativeLowering


class PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that others link; it is neither optimised as a whole nor made into machine code."""

    def _optimize_final_module(self) -> None:
        """Left to the library that links this one."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):  # type: ignore[misc]
    """numba's step from types to LLVM's code, which ends with a function that other kernels can call and Python cannot."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        low = state["cr"]
        # only the identity of this function counts: numba finds the code to link by it
        name, module = low.fndesc.qualname, low.fndesc.lookup_module()
        key = _dynfunc.make_function(module, name, "a part of other kernels", 0, low.env, (state.library,))
        state.targetctx.insert_user_function(key, low.fndesc, [state.library])
        state["cr"] = _LowerResult(low.fndesc, low.call_helper, cfunc=key, env=low.env)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class WholeLowering(NativeLowering):  # type: ignore[misc]
    """The same step for a kernel that Python calls: it gives its parts what numba gives a function with machine code of its own."""

    _name = "whole_lowering"

    def run_pass(self, state: Any) -> bool:
        super().run_pass(state)
        for variable in state.library._final_module.global_variables:
            env = lookup_environment(variable.name) if variable.name.startswith("_ZN08NumbaEnv") else None
            if env is not None:
                state.library.codegen.set_env(variable.name, env)
        return True


class _Compiler(CompilerBase):  # type: ignore[misc]
    """numba's compiler with another last step."""

    lowering: type[NativeLowering]

    def define_pipelines(self) -> list[Any]:
        steps = DefaultPassBuilder.define_nopython_pipeline(self.state)
        steps.passes = [(self.lowering if step is NativeLowering else step, why) for step, why in steps.passes]
        steps._finalized = False
        steps.finalize()
        return [steps]


class PartCompiler(_Compiler):
    """Compiles a kernel for other kernels."""

    lowering = PartLowering


class WholeCompiler(_Compiler):
    """Compiles a kernel for Python."""

    lowering = WholeLowering


def part(function: Callable[..., Any], **options: Any) -> Any:
    """`function` for kernels that call it; it is not kept, since those that it is linked into are."""
    without: dict[str, Any] = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}
    return njit(nogil=True, pipeline_class=PartCompiler, **without, **options)(function)


def whole(function: Callable[..., Any], **options: Any) -> Any:
    """`function` for Python. Kernels are never handed to other kernels as values, so the entry that numba makes for that is left out."""
    # numba takes the option, but its types do not name it
    without: dict[str, Any] = {"no_cfunc_wrapper": True}
    return njit(nogil=True, pipeline_class=WholeCompiler, **without, **options)(function)
