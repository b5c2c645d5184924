"""Link kernels by symbol, so that each is optimised and emitted once.

By default, numba links the code of all callees into a function, then optimises and emits the whole again, at every level of calls.
Here a kernel calls other kernels by their symbol. Only the code of small kernels is copied into callers, where LLVM may inline it.
numba's own helpers become part of the kernel that uses them and have no machine code of their own.
The entry from Python is compiled at the first call from Python, because most kernels are called by kernels only.
"""

from __future__ import annotations

import importlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import cached_property, reduce
from itertools import chain, count, islice
from typing import Any, NamedTuple

from numba.core import ir
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import CompileResultCacheImpl
from numba.core.codegen import JITCodeLibrary
from numba.core.codegen import ll as llvm
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.environment import Environment, lookup_environment
from numba.core.lowering import Lower
from numba.core.runtime.nrt import rtsys
from numba.core.typed_passes import NativeLowering
from numba.core.types.containers import List

INLINE_INSTRUCTIONS = 300  # LLVM's inliner counts 5 for most instructions and leaves a function of more than 250 alone
ENVIRONMENT_PREFIX = "_ZN08NumbaEnv"  # how numba names the global that points to a function's constants

_DEFAULT_FLAGS = {name: option.default for name, option in Flags.options.items()}


def _flag_values(flags: Any) -> dict[str, Any]:
    """Return all flags of a compilation, as numba's method does, which asks 23 properties in turn.

    numba compares flags at each look-up of an overload, 200,000 times for the kernels of `odt`.
    """
    return _DEFAULT_FLAGS | flags._values


Flags.values = _flag_values


class Address(NamedTuple):
    """Address of a kernel for other processes: its module, its qualified name there and the types of its arguments."""

    module: str
    name: str
    types: tuple[Any, ...]

    def dispatcher(self) -> Any:
        """Return the kernel; None if it is no attribute of its module, such as a function within a function."""
        try:
            return reduce(getattr, self.name.split("."), importlib.import_module(self.module))
        except (AttributeError, ImportError):
            return None


class _Library(JITCodeLibrary):  # type: ignore[misc]
    _final_module: Any

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self._called: dict[KernelLibrary, None] = {}

    def add_linking_library(self, library: Any) -> None:
        """Link to a kernel by its symbol, and to anything else by its code."""
        if isinstance(library, KernelLibrary):
            if library is not self:
                library._ensure_finalized()
                self._called[library] = None
        else:
            super().add_linking_library(library)

    def _optimize_functions(self, ll_module: Any) -> None:
        """Run numba's passes over the functions; numba would build the passes again for each function and each declaration."""
        ll_module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def _link_helpers(self) -> None:
        """Link the code of all libraries that numba asked to link, each once."""
        for helper in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(helper._reload_init)
            if isinstance(helper, HelperLibrary):
                self._called |= helper._called
                self._final_module.link_in(helper.lowered_module(), preserve=True)
            else:
                self._final_module.link_in(helper._get_module_for_linking(), preserve=True)

    def _set_environments(self) -> None:
        """Set the constants of all functions whose code is part of the library."""
        for variable in self._final_module.global_variables:
            environment = lookup_environment(variable.name) if variable.name.startswith(ENVIRONMENT_PREFIX) else None
            if environment is not None:
                self._codegen.set_env(variable.name, environment)


class HelperLibrary(_Library):
    """A helper of numba, linked into the kernels that use it; machine code is emitted only if another function needs it."""

    _emitted = False

    @property
    def codegen(self) -> Any:
        """The object that numba asks to set the constants of a function: this library, which ignores them, until it is emitted."""
        return super().codegen if self._emitted else self

    def set_env(self, name: str, environment: Any) -> None:
        """Ignore the constants; `_set_environments` sets them when the helper is emitted."""

    def finalize(self) -> None:
        """Link the libraries that this helper uses; LLVM optimises the code as a part of each kernel."""
        self._raise_if_finalized()
        self._link_helpers()
        self._finalize_dynamic_globals()
        self._finalized = True

    def lowered_module(self) -> Any:
        """Return the code as it was lowered, for linking into several others."""
        self._ensure_finalized()
        return super()._get_module_for_linking() if not self._emitted else self._lowered

    def _get_module_for_linking(self) -> Any:
        self._emit()
        return super()._get_module_for_linking()

    def _emit(self) -> None:
        if self._emitted:
            return
        self._lowered = self.lowered_module()
        self._shared_module = None
        self._emitted = True
        self._optimize_final_module()
        self._finalize_final_module()
        self._set_environments()

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function; 0 if it does not exist, as numba does."""
        self._ensure_finalized()
        try:
            self._final_module.get_function(name)
        except NameError:
            return 0
        self._emit()
        return int(super().get_pointer_to_function(name))

    def serialize_using_object_code(self) -> Any:
        """Emit the machine code and return it."""
        self._ensure_finalized()
        self._emit()
        return super().serialize_using_object_code()


class EntryLibrary(_Library):
    """The entry of a kernel from Python, which converts arguments and calls the kernel by its symbol."""

    def __init__(self, codegen: Any, kernel_name: str, symbol: str, environment: Any) -> None:
        super().__init__(codegen, f"{kernel_name} from Python")
        self.symbol = symbol
        self.environment = environment
        self.enable_object_caching()

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave the passes over functions out; `finalize` runs those over the module."""
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """Optimise the entry and emit its code."""
        self._raise_if_finalized()
        self._link_helpers()
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)
        self._finalize_final_module()
        self._set_environments()


class KernelLibrary(_Library):
    """The machine code of one kernel; it calls other kernels by their symbol."""

    address: Address
    symbols: tuple[str, ...] = ()
    entry: EntryLibrary | None = None
    entry_point: Any = None  # the function for calls from Python
    stored: tuple[Any, ...] | None = None  # what the cache file says of a loaded kernel, beside the code
    _machine_code: bytes | None = None  # of a loaded kernel; numba forgets it
    _inline: Any = None  # code that callers may inline

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.reached: dict[str, Address] = {}  # by symbol: the kernels that the code calls

    def finalize(self) -> None:
        """Optimise the function with its helpers and the small kernels that it calls, and emit its code."""
        self._raise_if_finalized()
        self._codegen._check_llvm_bugs()
        own = _defined(self._final_module)
        self._link_helpers()
        for library in self._called:
            self._reload_init.update(library._reload_init)
            self.reached |= library.reached | dict.fromkeys(library.symbols, library.address)
            if library._inline is not None:
                self._final_module.link_in(library._inline, preserve=True)
        self._optimize_final_module()
        self._keep_for_inlining(own)
        self._final_module.verify()
        undefined = {function.name for function in self._final_module.functions if function.is_declaration}
        self.reached = {symbol: address for symbol, address in self.reached.items() if symbol in undefined}
        self.symbols = tuple(sorted(own))
        self._finalize_final_module()
        self._set_environments()

    def _keep_for_inlining(self, own: set[str]) -> None:
        """Store a copy of a small kernel, which callers may inline."""
        blocks = (block for function in self._final_module.functions for block in function.blocks)
        instructions = chain.from_iterable(block.instructions for block in blocks)
        if next(islice(instructions, INLINE_INSTRUCTIONS, None), None) is None:
            self._inline = self._final_module.clone()
            for name in own:
                self._inline.get_function(name).linkage = "available_externally"

    def _get_module_for_linking(self) -> Any:
        """Return the module that a function links if it is no kernel; it calls this kernel by symbol, too."""
        self._ensure_finalized()
        return self._inline or llvm.parse_assembly(str(self._codegen._create_empty_module(self.name)))

    def serialize_using_object_code(self) -> Any:
        """Return the state that another process needs to link to this code."""
        self._ensure_finalized()
        inline = None if self._inline is None else self._inline.as_bitcode()
        entry = (
            None
            if self.entry is None
            else (self.entry.symbol, self.entry.environment, self.entry._get_compiled_object())
        )
        machine_code = self._machine_code or self._get_compiled_object()
        state = (machine_code, inline, entry, self.address, self.symbols, self.reached)
        return self.name, "kernel", state

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> KernelLibrary:
        name, _, (machine_code, inline, entry, address, symbols, reached) = state
        self = cls(codegen, name)
        self.address = address
        self.symbols = symbols
        self.reached = reached
        self._inline = None if inline is None else llvm.parse_bitcode(inline)
        self._machine_code = machine_code if entry is None else None
        self.enable_object_caching()
        self._set_compiled_object(machine_code)
        self._finalize_final_module()
        codegen._engine._defined_symbols.update(symbols)
        if entry is not None:
            symbol, environment, machine_code = entry
            self.entry = EntryLibrary(codegen, name, symbol, environment)
            self.entry._set_compiled_object(machine_code)
            self.entry._finalize_final_module()
            codegen._engine._defined_symbols.add(symbol)
            codegen.set_env(environment.env_name, environment)
        return self


def _defined(module: Any) -> set[str]:
    """Return the names of the functions that other modules can call."""
    return {f.name for f in module.functions if not f.is_declaration and f.linkage == llvm.Linkage.external}


@contextmanager
def _libraries(codegen: Any, library: type) -> Iterator[None]:
    """Let numba create libraries of this class; call it only under numba's compiler lock."""
    before = vars(codegen).get("_library_class")
    codegen._library_class = library
    try:
        yield
    finally:
        if before is None:
            del codegen._library_class
        else:
            codegen._library_class = before


# operations of numba's intermediate language whose results belong to the owner of their operands
BORROWING = frozenset(
    {"build_tuple", "cast", "exhaust_iter", "getattr", "getitem", "getiter", "iternext", "pair_first", "static_getitem"}
)


class _KernelLower(Lower):  # type: ignore[misc]
    """Lowering of a kernel, which counts no references to what the caller of the kernel holds.

    numba counts the references to each argument and to each view of it. Each count takes two atomic operations, up to a third of the time
    of a short loop along a row.
    """

    context: Any

    @cached_property
    def _borrowed(self) -> set[str]:
        """The names of the variables that hold only arguments of the kernel, constants, and views and parts of them."""
        values: dict[str, list[Any]] = {}
        for block in self.func_ir.blocks.values():
            for assignment in block.find_insts(ir.Assign):
                if self._is_counted(assignment.target):
                    values.setdefault(assignment.target.name, []).append(assignment.value)
        names = set(values)
        while owned := {name for name in names if not all(self._borrows(value, names) for value in values[name])}:
            names -= owned
        return names - {block.terminator.value.name for block in self.func_ir.blocks.values() if _returns(block)}

    def _is_counted(self, variable: Any) -> bool:
        return bool(self.context.data_model_manager[self.typeof(variable.name)].contains_nrt_meminfo())

    def _borrows(self, value: Any, borrowed: set[str]) -> bool:
        """Return whether a value belongs to the caller of the kernel if the named variables do."""
        if isinstance(value, ir.Arg | ir.Global | ir.FreeVar | ir.Const):
            return True
        if isinstance(value, ir.Var):
            return value.name in borrowed
        if not isinstance(value, ir.Expr) or value.op not in BORROWING:
            return False
        if value.op == "getitem" and self._is_counted(value.index):
            return False  # an array of positions makes a new array
        operands = [part for part in value.list_vars() if self._is_counted(part)]
        return all(part.name in borrowed and not isinstance(self.typeof(part.name), List) for part in operands)

    @cached_property
    def _uncounted(self) -> Any:
        return self.context.subtarget(enable_nrt=False)

    def lower_inst(self, inst: Any) -> None:
        """Lower an instruction; leave the counts out if it assigns or deletes a borrowed variable."""
        if _variable_of(inst) not in self._borrowed:
            super().lower_inst(inst)
            return
        counted = self.context
        self.context = self._uncounted
        try:
            super().lower_inst(inst)
        finally:
            self.context = counted

    def create_cpython_wrapper(self, release_gil: bool = False) -> None:
        """Leave the entry from Python out; `_add_entry` creates it."""


def _variable_of(inst: Any) -> str | None:
    """Return the name of the variable that an instruction assigns or deletes."""
    if isinstance(inst, ir.Assign):
        return str(inst.target.name)
    return str(inst.value) if isinstance(inst, ir.Del) else None


def _returns(block: Any) -> bool:
    return isinstance(block.terminator, ir.Return)


@register_pass(mutates_CFG=True, analysis_only=False)
class _KernelLowering(NativeLowering):  # type: ignore[misc]
    _name = "kernel_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        return _KernelLower


class KernelCompiler(CompilerBase):  # type: ignore[misc]
    """numba's compiler, which puts the code of a kernel into a KernelLibrary."""

    def define_pipelines(self) -> list[Any]:
        """Return numba's own passes, without the entry from Python."""
        passes = PassManager("kernel")
        for step, description in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            passes.add_pass(_KernelLowering if step is NativeLowering else step, description)
        passes.finalize()
        return [passes]

    def _compile_bytecode(self) -> Any:
        state = self.state
        # a kernel has the same symbol in all processes, and a helper of numba never has: numba counts both
        if "<locals>" not in state.func_id.func_qualname:
            state.func_id.unique_id = 0
        FunctionIdentity._unique_ids = count(secrets.randbits(60))
        state.flags.noalias = getattr(state.func_id.func, "distinct_arrays", False)
        codegen = state.targetctx.codegen()
        library = KernelLibrary(codegen, state.func_id.func_qualname)
        library.address = Address(state.func_id.modname, state.func_id.func_qualname, tuple(state.args))
        library.enable_object_caching()
        state.library = library
        with _libraries(codegen, HelperLibrary):
            return super()._compile_bytecode()


def _add_entry(result: Any) -> None:
    """Compile the entry of a kernel from Python."""
    library = result.library
    # numba forgets for a loaded kernel that arrays are counted
    context = result.target_context.subtarget(enable_nrt=True)
    # constants of its own, because stored callers of the kernel know those of the kernel alone
    description = copy(result.fndesc)
    description.env_name += "Entry"
    environment = Environment.from_fndesc(description)
    entry = EntryLibrary(library.codegen, library.name, description.llvm_cpython_wrapper_name, environment)
    entry.add_linking_library(rtsys.library)
    context.create_cpython_wrapper(entry, description, environment, None, release_gil=True)
    library.entry_point = context.get_executable(entry, description, environment)
    library.entry = entry


def enter_on_demand(dispatcher: Any) -> None:
    """Let a dispatcher compile the entry of a kernel at its first call from Python; kernels call each other without it."""
    add_overload = dispatcher.add_overload
    compile_for_args = dispatcher._compile_for_args

    def add(result: Any) -> None:
        if result.library.entry is None:
            dispatcher.overloads[tuple(result.signature.args)] = result
        else:
            add_overload(result)

    def compile_with_entry(*args: Any, **kws: Any) -> Any:
        function = compile_for_args(*args, **kws)
        with global_compiler_lock:
            for signature, result in list(dispatcher.overloads.items()):
                if result.entry_point is not function:
                    continue
                library = result.library
                if library.entry is None:
                    _add_entry(result)
                    dispatcher._insert([kind._code for kind in signature], library.entry_point, False)
                    dispatcher._cache.save_overload(signature, result)
                return library.entry_point
        return function

    dispatcher.add_overload = add
    dispatcher._compile_for_args = compile_with_entry


class KernelStore(CompileResultCacheImpl):  # type: ignore[misc]
    """Writer and reader of the cache file of a kernel."""

    def check_cachable(self, result: Any) -> bool:
        """Return whether another process can find all kernels that the code calls."""
        reached = result.library.reached.values()
        return super().check_cachable(result) and all(address.dispatcher() is not None for address in reached)

    def reduce(self, result: Any) -> Any:
        """Return what the cache file says of a kernel; a loaded one keeps all but its code."""
        if result.library.stored is None:
            return super().reduce(result)
        return (result.library.serialize_using_object_code(), *result.library.stored)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """Return the compiled kernel of a cache file; None if a kernel that it calls is missing."""
        codegen = target_context.codegen()
        _, _, (*_, reached) = payload[0]
        for symbol, address in reached.items():
            dispatcher = address.dispatcher()
            if dispatcher is None:
                return None
            dispatcher.compile(address.types)  # machine code is loaded before that of its callers
            if not codegen._engine.is_symbol_defined(symbol):
                return None
        with _libraries(codegen, KernelLibrary):
            result = super().rebuild(target_context, payload)
        library = result.library
        library.stored = payload[1:]
        if library.entry is not None:
            library.entry_point = result.entry_point
        return result
