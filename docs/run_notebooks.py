"""Run the notebooks of this folder and store their outputs.

`python -m docs.run_notebooks [NAME ...]` runs all, or the named ones.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent / "notebooks"
CELL_TIMEOUT_SECONDS = 600


def run(path: Path) -> nbformat.NotebookNode:
    """Run a notebook in a new kernel, and return it with its outputs.

    Raises CellExecutionError if a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT_SECONDS,
        record_timing=False,
        resources={"metadata": {"path": str(HERE.parent.parent)}},
    ).execute()
    return notebook


def main(names: list[str]) -> None:
    for path in sorted(HERE.glob("*.ipynb")):
        if not names or path.stem in names:
            notebook = run(path)
            for cell in notebook.cells:
                # Standard error has progress bars, whose seconds differ from run to run.
                if cell.cell_type == "code":
                    cell["outputs"] = [o for o in cell.outputs if o.get("name") != "stderr"]
            nbformat.write(notebook, path)
            print(f"{path.name}: stored")


if __name__ == "__main__":
    main(sys.argv[1:])
