"""Compile the kernels ahead, for the wheel: `python -m tools.ready [--into FOLDER] [METHOD ...]` (`trainer/precompiled.py` says what for).

Tiny trainings reach every kernel, in a process of its own that compiles for the processors that `trainer.precompiled.LEVELS` names; what it
compiled goes into FOLDER, default build/ready, from where the wheel takes it. NUMBA_CACHE_DIR keeps what was compiled before, as always.
`--variables` prints the shell's lines that let every process of that shell compile for these processors.
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
    """Compile in a process that knows no other processor; raises CalledProcessError and leaves `folder` as it was where that fails."""
    from trainer.precompiled import environment

    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / "ready"
        variables = {"NUMBA_CACHE_DIR": str(Path(scratch) / "numba")} | os.environ | environment()
        command = [sys.executable, "-m", "tools.ready", "--here", "--into", str(made), *methods]
        subprocess.run(command, env=variables, cwd=ROOT, check=True)  # noqa: S603 - our own command
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, folder)


def compile_here(folder: Path, methods: list[str]) -> None:
    """Reach the kernels in this process, whose environment names the processor, and copy their code."""
    from octweb.serving.warming import warm_kernels
    from trainer.registry import precompiled_ids
    from trainer.training.warm_up import warm

    for method in methods or precompiled_ids():
        warm(method)
    warm_kernels()
    copy_code(folder)


def copy_code(folder: Path) -> None:
    """Copy what numba keeps of the kernels of this process, for the processors of LEVELS, into `folder`."""
    from trainer.precompiled import KEPT, environment

    level = environment().get("NUMBA_CPU_NAME")
    for kernel in KEPT:
        kept = kernel.stored_in(Path(kernel.cache_path), name="")
        copied = kernel.stored_in(folder)
        found = {key: data for key, data in kept._load_index().items() if key[1][1] == level}
        if found:
            Path(copied._index_path).parent.mkdir(parents=True, exist_ok=True)
        for key, data in found.items():
            copied.save(key, kept._load_data(data))


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
    given = parser.parse_args()
    if given.variables:
        from trainer.precompiled import environment

        print("\n".join(f"export {name}='{value}'" for name, value in environment().items()))
    elif given.here:
        compile_here(given.into, given.methods)
    else:
        compile_into(given.into.resolve(), given.methods)
        size = sum(f.stat().st_size for f in given.into.rglob("*") if f.is_file())
        print(f"{given.into}: {size / 1e6:.1f} MB of compiled kernels")


if __name__ == "__main__":
    main()
