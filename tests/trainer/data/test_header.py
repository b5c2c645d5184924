"""Detection whether the first line of a CSV file is a header or a row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from trainer.data.formats.csv_file import read_csv
from trainer.data.inspect_table import inspect

RNG = np.random.default_rng(44)
ROWS = 60


def draw_integers(high):
    return RNG.integers(0, high, ROWS)


NAMED = {
    "years": {"region": RNG.choice(["N", "S"], ROWS), "2019": draw_integers(9000), "2020": draw_integers(9000), "2021": draw_integers(9000)},
    "two years": {"2020": draw_integers(9000), "2021": draw_integers(9000), "y": RNG.choice(["a", "b"], ROWS)},
    "numbers that pandas gives": {str(j): RNG.normal(size=ROWS) for j in range(4)},
    "wavelengths": {str(j): draw_integers(4096) for j in range(400, 700, 10)},
    "age bands": {"0": draw_integers(90), "5": draw_integers(90), "10": draw_integers(90), "15": draw_integers(90), "y": RNG.choice(["a", "b"], ROWS)},
    "one name is a value": {"smoker": RNG.choice(["smoker", "other"], ROWS), "y": RNG.choice(["a", "b"], ROWS)},
    "two names are values": {"yes": RNG.choice(["yes", "no"], ROWS), "no": RNG.choice(["yes", "no"], ROWS), "y": RNG.choice(["a", "b"], ROWS)},
    "numbers above text": {"1": RNG.choice(["a", "b"], ROWS), "2": RNG.choice(["c", "d"], ROWS)},
    "numbers far from their columns": {"500": RNG.normal(size=ROWS), "701": RNG.normal(size=ROWS)},
}  # fmt: skip
IRIS = load_iris(as_frame=True).frame
UNNAMED = {
    "measures": IRIS,
    "measures and a class": IRIS.assign(target=[f"class {k}" for k in IRIS.target]),
    "texts": pd.DataFrame({j: RNG.choice([f"{j}{k}" for k in range(3)], ROWS) for j in "abc"}),
    "counts": pd.DataFrame(RNG.integers(0, 1000, (ROWS, 12))),
    "rows that rise in steps": pd.DataFrame(np.arange(ROWS)[:, None] + 100 * np.arange(4)),
    "grades that often rise by one": pd.DataFrame({j: RNG.integers(1, 6, ROWS) for j in "abc"}),
}


@pytest.mark.parametrize("name", NAMED)
def test_names_like_values_are_no_missing_header(name):
    detected = read_csv(pd.DataFrame(NAMED[name]).to_csv(index=False).encode()).detected
    assert detected.header_sure > 0.25, detected.header_reason


@pytest.mark.parametrize("name", UNNAMED)
def test_first_row_in_place_of_names_is_noticed(name):
    frame = UNNAMED[name].drop_duplicates().T.drop_duplicates().T
    frame = frame[frame.nunique(axis=1) == len(frame.columns)]  # a header with repeated names would be refused
    detected = read_csv(frame.to_csv(index=False, header=False).encode()).detected
    assert detected.header_sure <= 0.25, detected.header_reason


def test_table_of_years_has_no_finding_about_its_header(tmp_path):
    pd.DataFrame(NAMED["years"]).to_csv(tmp_path / "t.csv", index=False)
    assert "no_header" not in {finding.kind for finding in inspect(tmp_path / "t.csv", target="region")}
