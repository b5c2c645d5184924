"""Write a comparison of methods as one HTML page.

The page has tables, ranks and figures, and includes plotly.js.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape as html
from typing import Any

from trainer.assets import STATIC
from trainer.evaluate import StudyReport
from trainer.evaluate.tables import MEASURES, sentence
from trainer.tree.render.palette import COLOURS, SHAPES, axis, escape, frame

ROW_PIXELS = 26  # height of a data set's row in pixels
HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Comparison of methods</title><style>
{style}
body {{ max-width: 1100px; margin: 0 auto; padding: 1.5rem; }} section {{ margin: 2rem 0; }}
table {{ border-collapse: collapse; }} th, td {{ padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--line); }}
th:first-child, td:first-child {{ text-align: left; }}
</style><body><h1>Comparison of methods</h1><p>{words}</p>
"""


def evaluation_page(report: StudyReport) -> str:
    """Return the HTML document."""
    words = (
        f"{report.folds}-fold stratified cross-validation, the same folds for all, seed {report.seed}. "
        "A star marks runs that a limit ended."
    )
    style = (STATIC / "tokens.css").read_text(encoding="utf-8") + (STATIC / "octweb.css").read_text(encoding="utf-8")
    parts = [HEAD.format(style=style, words=html(words))]
    for group, variants in report.groups.items():
        for measure, (title, _) in MEASURES.items():
            parts.append(_section(report, group, variants, measure, title))
    parts.append(f"<script>{(STATIC / 'vendor' / 'plotly.min.js').read_text(encoding='utf-8')}</script>")
    parts.append(f'<script type="module">{(STATIC / "figures.js").read_text(encoding="utf-8")}</script>')
    parts.append("</body></html>\n")
    return "".join(parts)


def measure_figure(report: StudyReport, variants: Sequence[str], measure: str) -> dict[str, Any]:
    """Return Plotly JSON with a row per data set and a marker per variant.

    Leaves and times have a logarithmic axis.
    """
    datasets = [d for d in report.datasets if any(report.cell(d, v).failed < report.folds for v in variants)][::-1]
    data: list[dict[str, Any]] = []
    for k, variant in enumerate(variants):
        cells = [report.cell(d, variant) for d in datasets]
        finished = [c for c in cells if c.failed < c.folds]
        trace: dict[str, Any] = {
            "type": "scatter",
            "mode": "markers",
            "name": escape(variant),
            "y": [escape(c.dataset) for c in finished],
            "marker": {"color": f"var(--c{k % COLOURS + 1})", "symbol": SHAPES[k % len(SHAPES)], "size": 9},
            "hovertemplate": "%{y}: %{x:.3g}<extra>" + escape(variant) + "</extra>",
        }
        if measure == "accuracy":
            trace["x"] = [100 * c.accuracy for c in finished]
            trace["error_x"] = {
                "type": "data",
                "array": [100 * c.deviation for c in finished],
                "thickness": 1,
                "width": 2,
            }
        elif measure == "leaves":
            trace["x"] = [c.leaves for c in finished]
        else:
            trace["x"] = [max(1e-4, c.seconds[min(c.seconds)]) for c in finished]
        data.append(trace)
    titles = {
        "accuracy": "accuracy on unseen rows, %",
        "leaves": "leaves",
        "seconds": "induction time of a fold, seconds",
    }
    layout = frame(
        height=110 + ROW_PIXELS * len(datasets),
        margin={"l": 160, "r": 24, "t": 40, "b": 48},
        xaxis=axis(titles[measure], **({} if measure == "accuracy" else {"type": "log", "dtick": 1})),
        yaxis=axis("", categoryorder="array", categoryarray=[escape(d) for d in datasets]),
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )
    return {"data": data, "layout": layout}


def _section(report: StudyReport, group: str, variants: Sequence[str], measure: str, title: str) -> str:
    name = f"{group or 'all'}-{measure}".replace(" ", "-")
    figure = json.dumps(measure_figure(report, variants, measure)).replace("<", "\\u003c")
    heading = html(f"{title.capitalize()}{f', {group}' if group else ''}")
    comparison = report.comparisons.get(group, {}).get(measure)
    words = f'<p class="note">{html(sentence(comparison))}</p>' if comparison else ""
    rows = "".join(_row(report, dataset, variants, measure) for dataset in report.datasets)
    ranks = ""
    if comparison:
        ranks = "<tr><th>average rank</th>" + "".join(f"<th>{r:.2f}</th>" for r in comparison.ranks) + "</tr>"
    head = "".join(f"<th>{html(v)}</th>" for v in variants)
    return (
        f'<section><h2>{heading}</h2>{words}<div id="{name}" class="figure" role="img" aria-label="{heading}; '
        f'the table below has the numbers."></div><script type="application/json" data-figure-for="{name}">{figure}</script>'
        f"<table><thead><tr><th>data set</th>{head}</tr></thead><tbody>{rows}{ranks}</tbody></table></section>"
    )


def _row(report: StudyReport, dataset: str, variants: Sequence[str], measure: str) -> str:
    cells = "".join(f"<td>{html(report.text(dataset, v, measure))}</td>" for v in variants)
    return f"<tr><td>{html(dataset)}</td>{cells}</tr>"
