"""Write a model as one HTML file that works offline.

It has questions, answers, tree and certificate, and needs no network.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template

from trainer.assets import STATIC
from trainer.data.column_statistics import ColumnStatistics, is_described
from trainer.evaluate.verdict import base_rate
from trainer.explain.carried import permission_records, tree_data
from trainer.explain.permission import Permission
from trainer.explain.statistics import coarse, statistics_of_model
from trainer.training.claims import (
    claim_words,
    cost_sentence,
    gap_words,
    goal_sentence,
    price_sentence,
    read_claim,
)
from trainer.tree.describe import is_weighted, number_text, rules_text
from trainer.tree.file import ModelFile
from trainer.tree.numbers import points_text

TEMPLATE = Path(__file__).with_suffix(".html")
STYLES = ("tokens.css", "carried.css", "questionnaire.css")
SCRIPTS = ("tree_engine.js", "tree_picture.js", "questionnaire.js", "carried.js")
# escapes for JSON inside a script element
SCRIPT_ESCAPES = {ord("<"): "\\u003C", ord(">"): "\\u003E", ord("&"): "\\u0026"}
ADDRESS = """
    The page of the model, with its certificate and history, for those who may see it:
    <a href="{address}">{address}</a>."""
DOSSIER = """
<p class="note2" id="dossier">
  The dossier of this model: data, check, performance, review and a signature, kept at <a href="{dossier}">{dossier}</a>
  for those who may read the model. It is about this model if its SHA-256 is
  <code>{sha256}</code>. This file works without it; the link needs a network.</p>"""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A model to export, with its title, the hash of its file, and the statistics and permissions for explanations."""

    file: ModelFile
    title: str
    sha256: str
    document: str
    statistics: Sequence[ColumnStatistics] | None = None
    permissions: Sequence[Permission] | None = None
    address: str = ""
    dossier: str = ""  # address of the dossier


def to_html(subject: Subject) -> str:
    """Return the HTML file; units of changes are rounded, because the file is for others."""
    tree = subject.file.tree
    known = statistics_of_model(tree) if subject.statistics is None else coarse(subject.statistics)
    measured_on = "nothing: the rows were not at hand, and it is 1"
    if subject.statistics is not None or is_described(tree):
        measured_on = "the training rows, rounded"
    meta = {
        "key": subject.sha256,
        "measured_on": measured_on,
        "permissions": permission_records(tree, subject.permissions) if subject.permissions else None,
        "foot": "The tree decides nothing alone.",
    }
    payload = {"tree": tree_data(tree, known), "meta": meta}
    address = escape(subject.address)
    dossier = escape(subject.dossier)
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(subject.title),
        target=escape(subject.file.target),
        style="\n".join(_asset(name) for name in STYLES),
        scripts="".join(f"<script>{_asset(name)}</script>\n" for name in SCRIPTS),
        payload=json.dumps(payload).translate(SCRIPT_ESCAPES),
        rules=escape(rules_text(tree, subject.file.certificate)),
        claims="".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in claims(subject)),
        address=ADDRESS.format(address=address) if address else "",
        dossier=DOSSIER.format(dossier=dossier, sha256=escape(subject.sha256)) if dossier else "",
    )


def claims(subject: Subject) -> list[tuple[str, str]]:
    """Return the claims of the certificate as pairs of a name and a text."""
    file = subject.file
    certificate = dict(file.certificate)
    claim = read_claim(certificate)
    train, test, crossed = (file.metrics.get(k) or {} for k in ("train", "test", "cross_validation"))
    gap = certificate.get("gap")
    bound = certificate.get("bound")
    lines = [("Claim", claim_words(certificate)), ("Scope", claim.scope), ("Method", file.method)]
    if certificate.get("costs"):
        lines.append(("Cost", cost_sentence(certificate["costs"], priced=bool(certificate.get("column_prices")))))
    if sentence := price_sentence(certificate):
        lines.append(("Prices of columns", sentence))
    if sentence := goal_sentence(certificate, file.parameters):
        lines.append(("Goal", sentence))
    if certificate.get("objective") is not None:
        lines.append(("Objective", number_text(float(certificate["objective"]), 6)))
    if bound is not None and gap is not None:
        lines.append(("Bound and gap", f"{number_text(float(bound), 6)}, {gap_words(gap).lower()}"))
    lines += [("Wish", f"{wish['words']} ({wish['price_words']})") for wish in claim.wishes]
    if claim.wishes:
        lines.append(("All wishes together", claim.price_words))
    for name, counts in (("Training rows", train), ("Unseen rows", test)):
        if counts.get("n"):
            by_weight = is_weighted(certificate) if counts is train else certificate.get("weights")
            lines.append((name, f"{counts['correct']:,} of {counts['n']:,}{' of weight' if by_weight else ''} right"))
    if crossed.get("accuracy") is not None:
        lines.append(("Cross-validation", f"{points_text(crossed['accuracy'])} % right"))
    if (rate := base_rate(file)) is not None:
        rows = "unseen" if rate.unseen else "training"
        lines.append(
            ("One answer for all", f"“{rate.label}” is right for {points_text(rate.share)} % of the {rows} rows")
        )
    lines += [("Rows that trained it", file.fingerprint), ("Model file", f"sha256 {subject.sha256}")]
    return [(name, value) for name, value in lines if value]


def _asset(name: str) -> str:
    """Return the text of a style or a script; raise ValueError if it would end the element that holds it."""
    text = (STATIC / name).read_text(encoding="utf-8")
    if "</script" in text or "</style" in text:
        raise ValueError(
            f"{name} cannot be embedded in a page, because it contains </script or </style. Remove this text."
        )
    return text
