"""Cold and warm start of a training: processor seconds of `manage.py train` on iris, first without and then with compiled kernels.

Usage: python benchmarks/start.py [--method bivariate]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def iris(path: Path) -> None:
    from sklearn.datasets import load_iris

    data = load_iris()
    lines = [",".join([*data.feature_names, "species"])]
    lines += [
        ",".join([*map(str, row), str(data.target_names[k])]) for row, k in zip(data.data, data.target, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")


def processor_seconds(command: list[str], environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", action="append", help="default: every method that needs no solver")
    methods = parser.parse_args().method or ["cart", "bivariate", "exact"]
    print("| method | first start, s | second start, s |\n|---|---|---|")
    for method in methods:
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "iris.csv"
            iris(data)
            environment = os.environ | {"NUMBA_CACHE_DIR": str(Path(folder) / "numba"), "OCTWEB_DATA_DIR": folder}
            command = [
                sys.executable,
                str(ROOT / "manage.py"),
                "train",
                str(data),
                "--target=species",
                f"--method={method}",
            ]
            cold = processor_seconds(command, environment)
            warm = min(processor_seconds(command, environment) for _ in range(3))
            print(f"| {method} | {cold:.2f} | {warm:.2f} |", flush=True)


if __name__ == "__main__":
    main()
