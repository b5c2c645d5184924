"""Cases and oracles of `test_protocol_types.py` that other tests use, too."""

from __future__ import annotations

from tests.octweb.registry.api_predict_cases import ROW


def body(**changes):
    row = ROW | changes
    return {
        "id": "r1",
        "inputs": [
            {"name": n, "datatype": "BYTES" if isinstance(v, str) else "FP64", "shape": [1], "data": [v]}
            for n, v in row.items()
        ],
    }
