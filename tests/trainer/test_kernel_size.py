"""Functions are small: at most 60 lines. Kernels have at most eight arguments, grouped by meaning in a NamedTuple where there are more."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import trainer

ARGUMENTS = 8
LINES = 60
ROOT = Path(trainer.__file__).parent


@cache
def functions(source: str) -> list[ast.FunctionDef]:
    """The functions of a module, which are asked for by several tests."""
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]


def kernels(source: str) -> list[ast.FunctionDef]:
    """The compiled functions of a module."""
    return [
        f
        for f in functions(source)
        if any(ast.unparse(d).partition("(")[0] in ("kernel", "njit") for d in f.decorator_list)
    ]


def too_large(source: str) -> set[str]:
    """The names of the kernels that break the rule."""
    broken = set()
    for f in kernels(source):
        arguments = len(f.args.posonlyargs) + len(f.args.args) + len(f.args.kwonlyargs)
        if arguments > ARGUMENTS or (f.end_lineno or 0) - f.lineno + 1 > LINES:
            broken.add(f.name)
    return broken


def test_kernels_have_few_arguments_and_lines():
    sources = {path.relative_to(ROOT).as_posix(): path.read_text() for path in sorted(ROOT.rglob("*.py"))}
    found = {name: broken for name, source in sources.items() if (broken := too_large(source))}
    assert not found
    assert sum(len(kernels(source)) for source in sources.values()) > 150


def long_functions(source: str) -> set[str]:
    """The names of the functions, compiled or not, with too many lines."""
    return {f.name for f in functions(source) if (f.end_lineno or 0) - f.lineno + 1 > LINES}


def test_no_function_has_many_lines():
    folders = (ROOT, ROOT.parent / "octweb")
    sources = {str(path): path.read_text() for folder in folders for path in sorted(folder.rglob("*.py"))}
    assert {name: broken for name, source in sources.items() if (broken := long_functions(source))} == {}
    assert long_functions("def long():\n" + "    pass\n" * 60) == {"long"}
    assert long_functions("def small():\n" + "    pass\n" * 59) == set()


def test_a_kernel_with_nine_arguments_or_61_lines_is_found():
    nine = "@kernel\ndef wide(a, b, c, d, e, f, g, h, i):\n    return a\n"
    long = "@njit(cache=True)\ndef long(a):\n" + "    a += 1\n" * 60
    other = "def plain(a, b, c, d, e, f, g, h, i):\n    return a\n"
    eight = "@kernel(error_model='numpy')\ndef small(a, b, c, d, e, f, g, h):\n" + "    a += 1\n" * 59
    assert too_large(nine + long + other + eight) == {"wide", "long"}
