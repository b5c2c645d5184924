"""A model as one HTML file that works from disk without a network: questions, answers for values and files, tree, certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.template.loader import render_to_string

from octweb.places import FILES
from trainer.data.column_statistics import ColumnStatistics, is_described
from trainer.evaluate.verdict import base_rate
from trainer.explain.carried import permitted, tree_data
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
from trainer.tree.describe import number_text, rules_text
from trainer.tree.file import ModelFile
from trainer.tree.numbers import points_text

STYLES = ("tokens.css", "carried.css", "questionnaire.css")
SCRIPTS = ("tree_engine.js", "tree_picture.js", "questionnaire.js", "carried.js")


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is exported: the model, its title, the hash of its file, and, for explanations, what is known about the rows."""

    file: ModelFile
    title: str
    sha256: str
    document: str
    statistics: Sequence[ColumnStatistics] | None = None
    permissions: Sequence[Permission] | None = None
    address: str = ""
    dossier: str = ""  # the address of the dossier


def to_html(subject: Subject) -> str:
    """The file. Units of changes are rounded: it is made to be given to others."""
    tree = subject.file.tree
    if subject.statistics is None:
        statistics = statistics_of_model(tree)
    else:
        statistics = coarse(subject.statistics)
    measured = (
        "the training rows, rounded"
        if subject.statistics is not None or is_described(tree)
        else "nothing: the rows were not at hand, and it is 1"
    )
    meta = {
        "key": subject.sha256,
        "measured_on": measured,
        "permissions": permitted(tree, subject.permissions) if subject.permissions else None,
        "foot": "The tree decides nothing alone.",
    }
    context = {
        "title": subject.title,
        "target": subject.file.target,
        "style": "\n".join(_asset(name) for name in STYLES),
        "scripts": [_asset(name) for name in SCRIPTS],
        "payload": {"tree": tree_data(tree, statistics), "meta": meta},
        "rules": rules_text(tree),
        "claims": claims(subject),
        "address": subject.address,
        "dossier": subject.dossier,
        "sha256": subject.sha256,
    }
    return render_to_string("registry/carried.html", context)


def claims(subject: Subject) -> list[tuple[str, str]]:
    """What the certificate says, line by line."""
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
            lines.append((name, f"{counts['correct']:,} of {counts['n']:,} right"))
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
    """A style or a script as it is served; its text must not end the element that holds it."""
    text = (FILES / "static" / name).read_text(encoding="utf-8")
    if "</script" in text or "</style" in text:
        raise ValueError(f"{name} cannot be put into a page: it has the end of an element")
    return text
