"""Optimise and emit a kernel's machine code once, at the entry from Python.

numba optimises every function that a kernel calls, emits its code, and does both again in each caller.
Here a called function is only typed and lowered. The first call from Python links all that it reaches and
optimises this once. The compiled program is the same; only the moment of the work changes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite.binding import Linkage
from numba import _dynfunc
from numba.core import event, sigutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import lookup_environment
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys

ENVIRONMENT_PREFIX = "_ZN08NumbaEnv"  # how numba names the global that points to a function's constants
_lowering = False  # whether a kernel is being lowered; changed only under numba's global compiler lock


class DeferredLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Functions of one module that are optimised and emitted together with all that they call."""

    _own_module: Any = None

    def add_linking_library(self, library: Any) -> None:
        """Remember a library to link; unlike numba, do not emit it first."""
        self._linking_libraries.append(library)

    def own_module(self) -> Any:
        """Return the functions of this library alone, in a form that many modules may link."""
        if self._own_module is None:
            self._own_module = _linkable(self._final_module)
        return self._own_module

    def closure(self) -> list[Any]:
        """Return all libraries that this one calls, directly or not, without itself."""
        found: dict[Any, None] = {}
        waiting = list(self._linking_libraries)
        while waiting:
            library = waiting.pop(0)
            if library is self or library in found:
                continue
            found[library] = None
            waiting.extend(getattr(library, "_linking_libraries", ()))
        return list(found)

    def finalize(self) -> None:
        """Link the closure, optimise it once and emit its code."""
        self._raise_if_finalized()
        self._codegen._check_llvm_bugs()
        self.own_module()
        self._link_closure(self._final_module)
        self._optimize_final_module()
        self._final_module.verify()
        self._finalize_final_module()

    def _link_closure(self, module: Any) -> None:
        for library in self.closure():
            self._reload_init.update(library._reload_init)
            is_lowered = isinstance(library, DeferredLibrary) and library.is_lowered()
            part = library.own_module() if is_lowered else library._get_module_for_linking()
            module.link_in(part, preserve=True)

    def is_lowered(self) -> bool:
        """Whether this process lowered the functions; code from the store has only its optimised form."""
        return self._own_module is not None or not self._finalized


def _linkable(module: Any) -> Any:
    """Return a copy whose functions may be defined several times and are dropped where nothing calls them."""
    copy = module.clone()
    for function in copy.functions:
        if not function.is_declaration and function.linkage == Linkage.external:
            function.linkage = "linkonce_odr"
    return copy


@ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.py_object)
def _not_emitted(closure: Any, args: Any, kwargs: Any) -> Any:
    raise SystemError("This function was compiled for other compiled functions only.")


_NOT_EMITTED = ctypes.cast(_not_emitted, ctypes.c_void_p).value


def _executable(library: Any, fndesc: Any, env: Any) -> Any:
    """Return what numba calls: the machine code of stored functions, and a placeholder for lowered ones."""
    if library._finalized:
        context = cpu_target.target_context
        return type(context).get_executable(context, library, fndesc, env)
    name = fndesc.qualname.split(".")[-1]
    return _dynfunc.make_function(fndesc.lookup_module(), name, "not emitted", _NOT_EMITTED, env, (library,))


@contextmanager
def _only_lower() -> Iterator[None]:
    """Let numba type and lower functions without optimising or emitting any; needs the compiler lock."""
    global _lowering
    if _lowering:
        yield
        return
    context = cpu_target.target_context
    codegen = context.codegen()
    rtsys.initialize(context)
    changes = {
        "create_cpython_wrapper": lambda *args, **options: None,
        "create_cfunc_wrapper": lambda *args, **options: None,
        "get_executable": _executable,
    }
    _lowering = True
    codegen._library_class = DeferredLibrary
    vars(context).update(changes)
    try:
        yield
    finally:
        _lowering = False
        del codegen._library_class
        for name in changes:
            del vars(context)[name]


def defer(dispatcher: Any) -> Any:
    """Let a compiled function emit code only for calls from Python; return it."""
    compile_at_once = dispatcher.compile
    add_emitted = dispatcher.add_overload

    def add_overload(result: Any) -> None:
        if _is_emitted(result):
            add_emitted(result)
        else:
            dispatcher.overloads[tuple(result.signature.args)] = result

    def compile(sig: Any) -> Any:
        with global_compiler_lock:
            if _lowering:
                return compile_at_once(sig)
            arguments, _ = sigutils.normalize_signature(sig)
            if tuple(arguments) not in dispatcher.overloads:
                with _only_lower():
                    compile_at_once(sig)
            result = dispatcher.overloads[tuple(arguments)]
            if not _is_emitted(result):
                data = {"dispatcher": dispatcher, "args": arguments, "return_type": None}
                with event.trigger_event("numba:compile", data=data):
                    result = _emit(result)
                    add_emitted(result)
                    dispatcher._cache.save_overload(sig, result)
            return result.entry_point

    dispatcher.add_overload = add_overload
    dispatcher.compile = compile
    return dispatcher


def _is_emitted(result: Any) -> bool:
    return bool(result.library._finalized)


def _emit(result: Any) -> Any:
    """Return the compile result with machine code for its function and all that it calls."""
    context = result.target_context
    kind = type(context)
    library = result.library
    description = result.fndesc
    environment = result.environment
    library.own_module()
    kind.create_cpython_wrapper(context, library, description, environment, result.call_helper, release_gil=True)
    entry = kind.get_executable(context, library, description, environment)
    for name in [variable.name for variable in library._final_module.global_variables]:
        if name.startswith(ENVIRONMENT_PREFIX) and (used := lookup_environment(name)) is not None:
            library.codegen.set_env(name, used)
    emitted = result._replace(entry_point=entry)
    cpu_target.target_context.insert_user_function(entry, description, [library])
    return emitted
