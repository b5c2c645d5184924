"""Tables by clause: where the dossier has the evidence for each point of a law or a guideline.

Words are ours. A point names its evidence, or says that a person must write it. `OCTWEB_REQUIRED_CLAUSES` names the
tables whose unwritten points prevent an approval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from octweb.dossier.texts import TEXTS


@dataclass(frozen=True, kw_only=True)
class Clause:
    """A point of a law or guideline.

    `sections` are parts of the document that hold evidence, and `texts` those that a person must have written. `records`
    says that each answer must be recorded, and `keep_days` how long at least. `is_summary`: the words follow a summary, because the text was not read.
    """

    clause: str
    what: str
    sections: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    records: bool = False
    keep_days: int = 0
    is_summary: bool = False


@dataclass(frozen=True, kw_only=True)
class ClauseTable:
    """Points of a law or guideline. `source` says which text was read, and its date."""

    key: str
    title: str
    source: str
    clauses: tuple[Clause, ...]


def _has_measured(record: Mapping[str, Any]) -> bool:
    performance = record["performance"]
    return bool(performance["unseen"] or performance["cross_validation"])


def _has_stability(record: Mapping[str, Any]) -> bool:
    return record["stability"] is not None or bool((record.get("bootstraps") or {}).get("ended"))


# section → its heading, and whether a record has its evidence
SECTIONS: dict[str, tuple[str, Callable[[Mapping[str, Any]], bool]]] = {
    "purpose": ("1 Purpose and limits", lambda record: True),
    "data": ("2 Data sheet", lambda record: True),
    "tree": ("3 The tree", lambda record: True),
    "claim": ("4 Claim and how to check it", lambda record: True),
    "performance": ("5 Performance", _has_measured),
    "calibration": ("6 Calibration by leaf", lambda record: bool(record["calibration"])),
    "stability": ("7 Stability", _has_stability),
    "review": ("8 Review", lambda record: bool(record["about"].get("review"))),
    "since": ("9 Decisions since approval", lambda record: "recording" in record["about"]),
    "ends": ("10 What would end this approval", lambda record: bool(record["about"].get("ends"))),
    "use": ("11 Limits of use", lambda record: True),
    "versions": ("12 Settings, versions and signature", lambda record: True),
}

AI_ACT = ClauseTable(
    key="ai-act",
    title="AI Act: Annex IV and Articles 12 to 14, 19 and 86",
    source="Regulation (EU) 2024/1689, Official Journal of 12 July 2024. It concerns systems of high risk.",
    clauses=(
        Clause(
            clause="Annex IV 1(a)",
            what="intended purpose, provider, version and earlier versions",
            sections=("versions",),
            texts=("meant_for", "contact"),
        ),
        Clause(clause="Annex IV 1(b)", what="hardware and software with which it interacts", texts=("setting",)),
        Clause(clause="Annex IV 1(c)", what="versions of the software", sections=("versions",)),
        Clause(
            clause="Annex IV 1(d), (e)",
            what="forms in which it is delivered, and hardware on which it runs",
            texts=("setting",),
        ),
        Clause(clause="Annex IV 1(f)", what="products that contain it", texts=("setting",)),
        Clause(
            clause="Annex IV 1(g), (h)",
            what="what its user sees, and instructions for use",
            sections=("use",),
            texts=("meant_for", "not_meant_for"),
        ),
        Clause(clause="Annex IV 2(a)", what="methods and steps of the development", sections=("versions", "claim")),
        Clause(
            clause="Annex IV 2(b)",
            what="logic, design choices, what it optimises, expected output",
            sections=("tree", "claim"),
            texts=("population",),
        ),
        Clause(clause="Annex IV 2(c)", what="architecture and computing resources", sections=("tree", "versions")),
        Clause(
            clause="Annex IV 2(d)",
            what="training data: description, origin, selection, cleaning",
            sections=("data",),
            texts=("sources",),
        ),
        Clause(clause="Annex IV 2(e)", what="assessment of the oversight by people", texts=("oversight",)),
        Clause(clause="Annex IV 2(f)", what="changes that are planned in advance", texts=("plan",)),
        Clause(
            clause="Annex IV 2(g)",
            what="validation, metrics, unequal effects on groups; signed reports",
            sections=("performance", "calibration", "review"),
            texts=("sensitive",),
        ),
        Clause(clause="Annex IV 2(h)", what="measures of cybersecurity", sections=("versions",), texts=("setting",)),
        Clause(
            clause="Annex IV 3",
            what="capabilities, limits, accuracy for groups, foreseeable unintended outcomes",
            sections=("performance", "use"),
            texts=("weakness", "risks"),
            is_summary=True,
        ),
        Clause(
            clause="Annex IV 4",
            what="why the metrics are appropriate",
            sections=("performance",),
            texts=("weakness",),
            is_summary=True,
        ),
        Clause(clause="Annex IV 5", what="system of risk management", texts=("risks",), is_summary=True),
        Clause(clause="Annex IV 6", what="changes over its life", sections=("review",), is_summary=True),
        Clause(
            clause="Annex IV 7, 8",
            what="standards applied, declaration of conformity",
            texts=("standards",),
            is_summary=True,
        ),
        Clause(clause="Annex IV 9", what="plan for monitoring in use", texts=("plan",), is_summary=True),
        Clause(
            clause="Article 12",
            what="events are recorded automatically over the lifetime",
            sections=("since",),
            records=True,
        ),
        Clause(
            clause="Article 13(1), (2)",
            what="output can be interpreted; instructions are complete and clear",
            sections=("tree", "use"),
            texts=("meant_for", "not_meant_for"),
        ),
        Clause(
            clause="Article 13(3)",
            what="provider, purpose, accuracy, risks, groups, input data, oversight, logs",
            sections=("data", "performance", "use"),
            texts=("contact", "risks", "oversight"),
            is_summary=True,
        ),
        Clause(
            clause="Article 14(4)",
            what="people understand, watch, interpret, override and stop it",
            sections=("tree", "use"),
            texts=("oversight",),
            is_summary=True,
        ),
        Clause(
            clause="Article 19",
            what="logs are kept at least six months, unless other law says otherwise",
            sections=("since",),
            records=True,
            keep_days=183,
        ),
        Clause(
            clause="Article 86",
            what="explanation of a decision to the affected person",
            sections=("tree", "since"),
            texts=("contact",),
            records=True,
        ),
    ),
)

SR_26_2 = ClauseTable(
    key="sr-26-2",
    title="SR 26-2: model risk management",
    source="Letter SR 26-2 of 17 April 2026 of the Federal Reserve with FDIC and OCC, which replaced SR 11-7; only summaries were read.",
    clauses=tuple(
        Clause(clause=clause, what=what, sections=sections, texts=texts, is_summary=True)
        for clause, what, sections, texts in (
            ("Materiality", "exposure and purpose of the model", ("purpose",), ("meant_for", "population")),
            ("Development", "theory, method, data and assumptions", ("data", "tree", "claim"), ("sources", "weakness")),
            ("Validation", "independent challenge, and its result", ("claim", "performance", "review"), ("responsible",)),
            ("Outcomes analysis", "answers against what came true", ("performance", "calibration"), ("plan",)),
            ("Ongoing monitoring", "triggers for a new review", ("ends",), ("plan",)),
            ("Governance, inventory", "owner, use, and limits of use", ("review", "use"), ("responsible", "users")),
        )
    ),
)  # fmt: skip

TRIPOD_AI = ClauseTable(
    key="tripod-ai",
    title="TRIPOD+AI: items 1 to 27",
    source="TRIPOD+AI statement of 2024 (BMJ 385:e078378); the 27 items were read in a public copy of the checklist, not in the journal.",
    clauses=tuple(
        Clause(clause=clause, what=what, sections=sections, texts=texts)
        for clause, what, sections, texts in (
            ("1, 2", "model, population and outcome in title and summary", ("purpose",), ("meant_for", "population")),
            ("3a", "context, and reason for the model", ("purpose",), ("meant_for",)),
            ("3b", "intended population and users", (), ("population", "users")),
            ("3c", "known inequalities between groups", ("performance",), ("sensitive",)),
            ("4", "development, evaluation, or both", ("performance",), ()),
            ("5a, 5b", "sources of the data, representativeness, dates", ("data",), ("sources",)),
            ("6a to 6c", "setting, who was included, treatments", ("data",), ("sources", "population")),
            ("7", "preparation and quality of the data, also by group", ("data",), ("sources", "sensitive")),
            ("8a to 8c", "outcome: definition, when and by whom assessed, blinding", ("data",), ("sources",)),
            ("9a to 9c", "predictors: choice, definition, when and by whom measured", ("data", "tree"), ("sources",)),
            ("10", "sample size, and why it suffices", ("data", "performance"), ("weakness",)),
            ("11", "missing data, and rows that were left out", ("data",), ("sources",)),
            ("12a to 12c", "use of the data, kind of model, steps and settings", ("claim", "versions"), ()),
            ("12d", "differences between sites or clusters", ("performance",), ("weakness",)),
            ("12e", "measures and charts of performance, and why these", ("performance", "calibration"), ("weakness",)),
            ("12f, 12g", "updates after the evaluation; how answers are computed", ("tree", "versions"), ("plan",)),
            ("13", "weights of classes, and calibration after them", ("versions", "calibration"), ()),
            ("14", "what was done for fairness, and why", ("performance",), ("sensitive",)),
            ("15", "output: classes, probabilities, and thresholds", ("tree", "calibration"), ()),
            ("16", "differences between training and evaluation data", ("data", "performance"), ("sources",)),
            ("17", "ethical approval and consent", (), ("standards",)),
            ("18a to 18d", "funding, interests, protocol, registration", (), ("standards",)),
            ("18e, 18f", "availability of data and code", ("versions",), ("sources",)),
            ("19", "involvement of patients and the public", (), ("oversight",)),
            ("20a to 20c", "rows with and without the outcome, their characteristics", ("data",), ("sources",)),
            ("21", "number of rows in each analysis", ("data", "performance"), ()),
            ("22", "the full model, so that others can use and check it", ("tree", "claim", "versions"), ()),
            ("23a, 23b", "performance with intervals, by group and cluster", ("performance",), ("sensitive",)),
            ("24", "results of updates", ("review",), ("plan",)),
            ("25", "interpretation, with fairness", ("performance",), ("meant_for", "sensitive")),
            ("26", "limitations, and their effects", ("stability", "use"), ("weakness",)),
            ("27a", "poor or missing input in use", ("use",), ("not_meant_for",)),
            ("27b", "what users must do, and what they must know", ("use",), ("users", "oversight")),
            ("27c", "next steps", (), ("plan",)),
        )
    ),
)  # fmt: skip

REGULATION_B = ClauseTable(
    key="regulation-b",
    title="Regulation B: notices of adverse action",
    source="12 CFR 202.9 as revised on 1 January 2006, which 12 CFR 1002.9 continues; the comment on four reasons in a summary.",
    clauses=(
        Clause(clause="1002.9(a)(1)", what="notice within the stated days", texts=("oversight",)),
        Clause(
            clause="1002.9(a)(2)",
            what="written notice: action, creditor, agency, and specific reasons",
            sections=("tree",),
            texts=("contact",),
        ),
        Clause(
            clause="1002.9(b)(2), comment",
            what="specific principal reasons; more than four hardly help",
            sections=("tree",),
            is_summary=True,
        ),
    ),
)

TABLES = (AI_ACT, SR_26_2, TRIPOD_AI, REGULATION_B)
KEYS = tuple(table.key for table in TABLES)


def clause_tables(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each table with its points: `state` is "evidence", "missing", "write" or "records".

    "records": the answers are not recorded, or not kept long enough. `sections` lists the evidence, `missing` the sections without it, and `unwritten` the missing texts.
    """
    return [
        {
            "key": table.key,
            "title": table.title,
            "source": table.source,
            "clauses": [_point(clause, record) for clause in table.clauses],
        }
        for table in TABLES
    ]


def open_clauses(tables: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the points of each table that a person must still write, by the key of the table."""
    return {
        table["key"]: [point["clause"] for point in table["clauses"] if point["state"] == "write"] for table in tables
    }


def _point(clause: Clause, record: Mapping[str, Any]) -> dict[str, Any]:
    written = (record["about"].get("purpose") or {}).items()
    labels = {label for label, text in written if text}
    unwritten = [TEXTS[name] for name in clause.texts if TEXTS[name] not in labels]
    held = [name for name in clause.sections if SECTIONS[name][1](record)]
    missing = [SECTIONS[name][0] for name in clause.sections if name not in held]
    is_kept = record["about"].get("record_keep_days", 0) >= clause.keep_days
    is_recorded = record["about"].get("recording") == "full" and is_kept
    state = "evidence" if held or clause.texts else "missing"
    if clause.records and not is_recorded:
        state = "records"
    if unwritten:
        state = "write"
    texts = [TEXTS[name] for name in clause.texts if TEXTS[name] in labels]
    return {
        "clause": clause.clause,
        "what": clause.what,
        "summary": clause.is_summary,
        "state": state,
        "sections": [{"id": name, "title": SECTIONS[name][0]} for name in held],
        "texts": texts,
        "missing": missing,
        "unwritten": unwritten,
        "keep_days": clause.keep_days,
    }
