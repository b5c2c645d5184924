"""Cases and oracles of `test_tree_figure.py` that other tests use, too."""

from __future__ import annotations

import json

import plotly.graph_objects as go


def _valid(figure):
    """Return the figure as Plotly's own class, which refuses unknown attributes and values. It must be plain JSON."""
    return go.Figure(json.loads(json.dumps(figure, allow_nan=False)))
