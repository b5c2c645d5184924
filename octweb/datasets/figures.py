"""Compute the small charts of a data set: classes as one bar, columns as histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from octweb.datasets.models import Dataset
from trainer.tree.render.palette import swatch

COLUMN_ORDERS = {"cut": "best single cut", "file": "order in the file", "name": "name", "missing": "missing"}


def class_bars(classes: Sequence[str], counts: Sequence[int]) -> list[dict[str, Any]]:
    """Return the classes by size, with start and width of each in the bar."""
    pairs = sorted(zip(counts, classes, range(1000), strict=False), key=lambda p: -p[0])
    total = max(1, sum(count for count, _, _ in pairs))
    out = []
    start = 0.0
    for count, label, k in pairs:
        percent = 100 * count / total
        out.append(
            {
                "label": label,
                "rows": count,
                "share": count / total,
                "start": start,
                "percent": percent,
                "colour": swatch(k, len(classes)),
            }
        )
        start += percent
    return out


def column_charts(dataset: Dataset, sort: str) -> list[dict[str, Any]]:
    """Return the columns of the profile, sorted. Their histograms are rectangles, stacked by class."""
    records = {c["name"]: c for c in dataset.columns}
    columns = []
    classes = len(dataset.profile.get("classes", ()))
    for column in dataset.profile.get("columns", ()):
        histogram = column["histogram"]
        top = max((sum(bin_) for bin_ in histogram), default=0) or 1
        width = 100 / max(1, len(histogram))
        bars = []
        for b, bin_ in enumerate(histogram):
            base = 24.0
            for k, count in enumerate(bin_):
                if count:
                    height = 24 * count / top
                    base -= height
                    bars.append(
                        {
                            "x": round(b * width, 2),
                            "y": round(base, 2),
                            "w": round(width * 0.9, 2),
                            "h": round(height, 2),
                            "colour": (look := swatch(k, classes)),
                            "hatch": look[-1] if " h" in look else "",
                        }
                    )
        columns.append(column | {"bars_drawn": bars, "record": records.get(column["name"], {})})
    keys = {
        "cut": lambda c: -c["cut_accuracy"],
        "file": lambda c: 0,
        "name": lambda c: c["name"].lower(),
        "missing": lambda c: -c["record"].get("empty", 0),
    }
    return sorted(columns, key=keys[sort])
