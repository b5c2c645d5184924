"""Change guards in many small ways and list the changes that no test notices: `make mutants`.

    python -m tests.mutants [MODULE.py …] [--sample 20] [--seed 0] [--processes 2]

Cosmic Ray makes the changes. Each one lives in a fork of this process, which imports the changed module in place of the file and runs the
tests of its package, the fastest first; no file is written. Without arguments it draws `--sample` changes of each module in GUARDS. A survivor is a change
that no test notices: write the test, or convince yourself that both versions do the same.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import importlib.abc
import importlib.util
import io
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import grimp
import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parent.parent
GUARDS = {
    "trainer/certificate.py": "tests/trainer/test_certificate.py",
    "trainer/data/integer_weights.py": "tests/trainer/test_whole_weights.py",
    "trainer/check/proof": "tests/trainer/check/proof",
    "trainer/check/recount": "tests/trainer/check/recount",
    "octweb/*/actions.py": "tests/octweb/{app}",
}
NOTICED = 0
SURVIVED = 1
SLOWER = 10  # a mutant that makes the tests this many times slower counts as noticed
PRELOADED = ("trainer.cli.train", "trainer.cli.verify", "trainer.workbench")  # imported once, not by each fork
MOST_BYTES = 4 << 30  # memory that the tests may use, because a mutant may loop for ever


@dataclass(frozen=True)
class Mutant:
    """Module with one change."""

    path: str
    operator: str
    occurrence: int
    source: str

    def difference(self) -> str:
        before = (ROOT / self.path).read_text(encoding="utf-8").splitlines()
        lines = difflib.unified_diff(before, self.source.splitlines(), self.path, self.operator, lineterm="", n=1)
        return "\n".join(lines)


class ChangedModule(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import one module from a text instead of its file."""

    def __init__(self, mutant: Mutant) -> None:
        self.name = mutant.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self.mutant = mutant

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        is_package = self.mutant.path.endswith("__init__.py")
        return importlib.util.spec_from_file_location(
            name, ROOT / self.mutant.path, loader=self, submodule_search_locations=[] if is_package else None
        )

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.mutant.source, str(ROOT / self.mutant.path), "exec"), module.__dict__)


def preload() -> None:
    """Import the library and its dependencies in the environment of the tests, which each fork sets up again."""
    importlib.import_module("tests.environment")
    del sys.modules["tests.environment"]
    for name in PRELOADED:
        importlib.import_module(name)


def forget(name: str) -> None:
    """Remove a module and all that import it from the loaded modules, so that they are imported again."""
    graph = grimp.build_graph("trainer", cache_dir=None)
    importers = graph.find_downstream_modules(name) if name in graph.modules else set()
    for module in {name} | importers - {"trainer"}:
        sys.modules.pop(module, None)
        package, _, last = module.rpartition(".")
        if package in sys.modules:
            vars(sys.modules[package]).pop(last, None)


class TestOrder:
    """Pytest plugin that measures the tests, or runs the fastest ones first: most changes fail many tests."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds
        self.measured: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.measured[report.nodeid] = self.measured.get(report.nodeid, 0.0) + report.duration

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self.seconds.get(item.nodeid, 0.0))


def mutants_of(path: str) -> Iterator[Mutant]:
    """Yield each change of a module that alters more than annotations and docstrings."""
    source = (ROOT / path).read_text(encoding="utf-8")
    tree = get_ast(source)
    unchanged = executed(source)
    for name in operator_names():
        operator_class = get_operator(name)
        if operator_class.arguments():
            continue
        count = sum(1 for node in ast_nodes(tree) for _ in operator_class().mutation_positions(node))
        for occurrence in range(count):
            changed = mutate_code(source, operator_class(), occurrence)
            with contextlib.suppress(SyntaxError):
                if changed is not None and executed(changed) != unchanged:
                    yield Mutant(path, name.removeprefix("core/"), occurrence, changed)


def executed(source: str) -> str:
    """Return the syntax tree of a source without annotations, docstrings and `kw_only`, which restrict nobody at run time."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(value=None)
        elif isinstance(node, ast.Call):
            node.keywords = [keyword for keyword in node.keywords if keyword.arg != "kw_only"]
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            del body[0]
    return ast.dump(tree)


def survivors_of(mutants: list[Mutant], tests: str, durations: dict[str, float], processes: int) -> list[Mutant]:
    """Run the tests against each mutant in a fork. Return the mutants with which all tests pass in time."""
    seconds = 5 + SLOWER * sum(durations.values())
    waiting = mutants[::-1]
    running: dict[int, tuple[Mutant, float]] = {}
    survivors = []
    while waiting or running:
        while waiting and len(running) < processes:
            mutant = waiting.pop()
            child = os.fork()
            if not child:
                os._exit(NOTICED if run_tests(tests, mutant, TestOrder(durations)) else SURVIVED)
            running[child] = mutant, time.monotonic() + seconds
        time.sleep(0.05)
        for child, (mutant, deadline) in list(running.items()):
            if time.monotonic() > deadline:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                del running[child]
                if status == SURVIVED << 8:
                    survivors.append(mutant)
    return survivors


def run_tests(tests: str, mutant: Mutant | None, order: TestOrder) -> bool:
    """Return whether a test fails. This must run in a fork."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    if mutant is not None:
        changed = ChangedModule(mutant)
        forget(changed.name)
        sys.meta_path.insert(0, changed)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        options = ["-x", "-p", "no:cacheprovider", "-m", "not slow and not browser", "--instances", "2"]
        return pytest.main([tests, *options], plugins=[order]) != pytest.ExitCode.OK


def targets(arguments: list[str]) -> Iterator[tuple[str, str]]:
    """Yield modules and their tests: the named modules, or all that GUARDS lists."""
    for pattern, tests in GUARDS.items():
        paths = ROOT.glob(f"{pattern}/**/*.py" if (ROOT / pattern).is_dir() else pattern)
        for path in sorted(path.relative_to(ROOT) for path in paths):
            if not arguments or str(path) in arguments:
                yield str(path), tests.format(app=path.parts[1])


def measure(tests: str) -> dict[str, float]:
    """Return the seconds that each test takes without a change. Exit if one fails."""
    with tempfile.TemporaryFile("w+") as result:
        child = os.fork()
        if not child:
            order = TestOrder({})
            failed = run_tests(tests, None, order)
            json.dump(order.measured, result)
            result.flush()
            os._exit(1 if failed else 0)
        if os.waitpid(child, 0)[1]:
            raise SystemExit(f"{tests} fails without any change.")
        result.seek(0)
        durations: dict[str, float] = json.load(result)
    return durations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE.py")
    parser.add_argument("--sample", type=int, default=20, help="changes of each module; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    os.chdir(ROOT)
    preload()
    durations: dict[str, dict[str, float]] = {}
    total = 0
    survivors: list[Mutant] = []
    for path, tests in targets(options.modules):
        mutants = list(mutants_of(path))
        if options.sample and options.sample < len(mutants):
            mutants = random.Random(options.seed).sample(mutants, options.sample)
        if not mutants:
            continue
        if tests not in durations:
            durations[tests] = measure(tests)
        missed = survivors_of(mutants, tests, durations[tests], options.processes)
        total += len(mutants)
        survivors += missed
        print(f"{path}: the tests notice {len(mutants) - len(missed)} of {len(mutants)} changes", flush=True)
        for mutant in missed:
            print(mutant.difference(), flush=True)
    print(f"{len(survivors)} of {total} changes survive.")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
