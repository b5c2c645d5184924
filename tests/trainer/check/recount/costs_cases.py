"""Cases and oracles of `test_costs.py` that other tests use, too."""

from __future__ import annotations


def write_table(path, table, labels):
    lines = [",".join([*table.names, "y"])]
    lines += [
        ",".join([*(f"{v:g}" for v in row), labels.classes[k]])
        for row, k in zip(table.matrix(), labels.codes, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
