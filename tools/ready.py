"""Compile the kernels in advance for the wheel (see `trainer/precompiled.py`).

`python -m tools.ready [--into FOLDER] [METHOD ...]` runs tiny trainings in a child process. They reach every
kernel and compile it for the processors of `trainer.precompiled.LEVELS`. The machine code goes into FOLDER,
by default build/ready, and the wheel takes it from there. NUMBA_CACHE_DIR caches it as always.

`--variables` prints shell commands that let every process of the shell compile for these processors.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEFAULT = ROOT / "build" / "ready"


def compile_into(folder: Path, methods: list[str]) -> None:
    """Compile the kernels into `folder` in a child process.

    Raises CalledProcessError and leaves `folder` as it was if that fails.
    """
    from trainer.precompiled import environment

    with tempfile.TemporaryDirectory() as scratch:
        compiled = Path(scratch) / "ready"
        variables = {"NUMBA_CACHE_DIR": str(Path(scratch) / "numba")} | os.environ | environment()
        command = [sys.executable, "-m", "tools.ready", "--here", "--into", str(compiled), *methods]
        subprocess.run(command, env=variables, cwd=ROOT, check=True)  # noqa: S603 - our own command
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(compiled, folder)


def compile_here(folder: Path, methods: list[str]) -> None:
    """Compile the kernels in this process and copy their code to `folder`.

    The environment variables of the process name the processor.
    """
    from octweb.serving.warming import warm_kernels
    from trainer.registry import precompiled_ids
    from trainer.training.warm_up import warm

    for method in methods or precompiled_ids():
        warm(method)
    warm_kernels()
    copy_code(folder)


def copy_code(folder: Path) -> None:
    """Copy the cached machine code of the kernels for the processors of LEVELS into `folder`."""
    from trainer.precompiled import KEPT, environment

    level = environment().get("NUMBA_CPU_NAME")
    for kernel in KEPT:
        cached = kernel.stored_in(Path(kernel.cache_path), name="")
        copied = kernel.stored_in(folder)
        code = {key: data for key, data in cached._load_index().items() if key[1][1] == level}
        if code:
            Path(copied._index_path).parent.mkdir(parents=True, exist_ok=True)
        for key, data in code.items():
            copied.save(key, cached._load_data(data))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "methods", nargs="*", metavar="METHOD", help="default: every method that has kernels of its own"
    )
    parser.add_argument("--into", type=Path, default=DEFAULT, metavar="FOLDER")
    parser.add_argument(
        "--variables", action="store_true", help="print the variables of the environment, and compile nothing"
    )
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.variables:
        from trainer.precompiled import environment

        print("\n".join(f"export {name}='{value}'" for name, value in environment().items()))
    elif options.here:
        compile_here(options.into, options.methods)
    else:
        compile_into(options.into.resolve(), options.methods)
        size = sum(f.stat().st_size for f in options.into.rglob("*") if f.is_file())
        print(f"{options.into}: {size / 1e6:.1f} MB of compiled kernels")


if __name__ == "__main__":
    main()
