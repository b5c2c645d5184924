"""Fixtures of runs: a small data set, and one on which an exact search is long."""

from __future__ import annotations

import io
import random

import pytest

from octweb.datasets import actions as datasets

CSV = "width,height,colour,class\n" + "".join(
    f"{i % 7}.5,{(i * i) % 11},{('red', 'green', 'blue')[i % 3]},{'yes' if (i % 7 > 3) != (i % 3 == 0) else 'no'}\n"
    for i in range(120)
)


@pytest.fixture
def csv_file(tmp_path):
    path = tmp_path / "small.csv"
    path.write_text(CSV)
    return path


@pytest.fixture
def dataset(owner, media, csv_file):
    with csv_file.open("rb") as stream:
        return datasets.create(owner=owner, file=stream, source_name="small.csv", name="Small", target="class")


def hard_csv() -> io.BytesIO:
    """Return rows of noise in many categories, on which an exact search runs for hours."""
    draw = random.Random(1)
    lines = [",".join([*(f"c{j}" for j in range(12)), "class"])]
    lines += [",".join([*(f"v{draw.randrange(12)}" for _ in range(12)), draw.choice("ab")]) for _ in range(500)]
    return io.BytesIO(("\n".join(lines) + "\n").encode())


@pytest.fixture
def hard_dataset(owner, media):
    return datasets.create(owner=owner, file=hard_csv(), source_name="hard.csv", name="Hard", target="class")
