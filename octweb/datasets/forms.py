"""Parse the form fields of data set pages, and build the records that the pages show."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from octweb.datasets.choice import ColumnChoice, ReadOptions
from trainer.data.parsing import EVERY, ColumnReading, ParsingChoices
from trainer.data.parsing.codes import parse_codes, parse_meanings
from trainer.data.parsing.column import RANKS, TEXT
from trainer.data.parsing.numbers import other_sign
from trainer.errors import DataError
from trainer.table import ColumnKind, MissingPolicy, UnknownPolicy

DELIMITERS = {"": "detected", ",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
DECIMALS = {"": "detected", ".": "point", ",": "comma"}
THOUSANDS_SIGNS = {"": "detected", ",": "comma", ".": "point", " ": "space", "'": "apostrophe", "none": "nothing"}
KINDS_OFFERED = (
    "text",
    "number",
    "number:,",
    "number:,.",
    "number:.,",
    "date:dd/mm/yyyy",
    "date:mm/dd/yyyy",
    "date:dd.mm.yyyy",
    "time",
)
EXAMPLE_DATES = {"dd/mm/yyyy": "31/12/2024", "mm/dd/yyyy": "12/31/2024", "dd.mm.yyyy": "31.12.2024"}
MOST_WORDS = 20
EMPTY_CODES = "empty-codes:"  # form field with a column's codes that mean an empty cell; the column name follows
MERGE = "merge:"  # form field that merges the spellings of each value in a column; the column name follows
COLUMN_FIELDS = ("role", "kind", "missing", "unknown", "unit", "special")
FINDING_TITLES = {
    "identifier": "Names or counts the rows",
    "leak": "Gives the answer away",
    "look_alike_classes": "Classes that look alike",
    "other_spelling": "Spellings of one value",
    "sentinel": "Marks for missing values",
    "words_among_numbers": "Words among numbers",
    "words_among_dates": "Words among dates",
    "dates_as_numbers": "Dates as numbers",
    "unread_dates": "Dates kept as text",
    "unread_numbers": "Numbers kept as text",
    "rare_class": "Classes of one row",
    "mixed_units": "Numbers in another unit",
    "ordered_categories": "Ordered categories",
    "number_texts": "Numbers written as text",
    "emptiness_predicts": "Empty cells tell the class",
    "date_after_outcome": "A date after the outcome",
    "equal_rows_across": "Equal rows",
    "conflicting_rows": "Equal rows of different classes",
    "constant": "One value",
    "base_rate": "One class is common",
    "no_header": "No header line",
    "not_trainable": "No tree can be trained",
}
ENCODINGS = ("", "utf-8", "cp1252", "latin-1", "utf-16", "cp1250", "mac-roman", "shift_jis", "gb18030")


def reading_of(data: QueryDict | dict[str, Any]) -> ReadOptions:
    """Parse the read options of the preview form. Unknown values mean "detected"."""
    delimiter = data.get("delimiter", "")
    encoding = data.get("encoding", "")
    return ReadOptions(
        delimiter=delimiter if delimiter in DELIMITERS and delimiter else None,
        encoding=encoding if encoding in ENCODINGS and encoding else None,
        header=data.get("header", "yes") != "no",
        sheet=data.get("sheet") or None,
        given=_parse_options(data),
    )


def _parse_options(data: QueryDict | dict[str, Any]) -> dict[str, Any]:
    """Parse the choices about cells and about lines around the table.

    The fields `taken:NAME`, `empty-codes:NAME` and `merge:NAME` belong to one column. The others apply to all columns.
    """
    if data.get("given"):
        try:
            return ParsingChoices.from_json(json.loads(data["given"])).to_json()
        except (DataError, ValueError, TypeError, AttributeError):
            return {}
    kinds = {key.removeprefix("taken:"): data[key] for key in data if key.startswith("taken:") and data[key]}
    words = split_words(data.get("missing_words", ""))
    empty = {EVERY: words[:MOST_WORDS]} if words else {}
    for key in data:
        if key.startswith(EMPTY_CODES) and (codes := split_words(data[key])):
            empty[key.removeprefix(EMPTY_CODES)] = codes[:MOST_WORDS]
    merge: dict[str, dict[str, str]] = {key.removeprefix(MERGE): {} for key in data if key.startswith(MERGE)}
    choices: dict[str, Any] = {"kinds": kinds, "missing": empty, "merge": merge}
    for what, known in (("decimal", DECIMALS), ("thousands", THOUSANDS_SIGNS)):
        if data.get(what) in known and data.get(what):
            choices[what] = {EVERY: "" if data[what] == "none" else data[what]}
    for what in ("skip_top", "skip_bottom"):
        if data.get(what, "").isascii() and data.get(what, "").isdigit() and len(data[what]) <= 4:
            choices[what] = int(data[what])
    return {name: value for name, value in choices.items() if value or value == 0}


_WORD = re.compile(r'\s*"((?:[^"]|"")+)"\s*(?:,|$)|([^,]*)(?:,|$)')


def split_words(text: str) -> list[str]:
    """Split a list such as `?, "37,,2"` into its words. A word with a comma stands in double quotes."""
    pairs = ((quoted.replace('""', '"') or plain).strip() for quoted, plain in _WORD.findall(text))
    return [word for word in pairs if word]


def join_words(words: Iterable[str]) -> str:
    """Return words as a list that `split_words` reads."""
    return ", ".join(
        f'"{word.replace(chr(34), chr(34) * 2)}"' if "," in word or word.startswith('"') else word for word in words
    )


def with_remedy(post: QueryDict, names: list[str]) -> QueryDict:
    """Return the fields of the preview with the remedy of the pressed button filled in.

    `names` are the columns that the page showed.
    """
    mend = remedy_of(post)
    if not mend:
        return post
    name = str(mend.get("column", ""))
    data = post.copy()
    if mend.get("header") is False:
        data["header"] = "no"
        data["seen"] = ""  # the columns get other names, so earlier choices no longer apply
        return data
    names_of_remedy = mend.get("columns")
    for position in [
        names.index(own) for own in (names_of_remedy if isinstance(names_of_remedy, list) else [name]) if own in names
    ]:
        if mend.get("role") in ("feature", "ignored"):
            data[f"role-{position}"] = mend["role"]
    if "merge" in mend:
        data[f"{MERGE}{name}"] = "1"
    elif isinstance(mend.get("missing"), list):
        data[f"{EMPTY_CODES}{name}"] = join_words(map(str, mend["missing"]))
    elif "role" not in mend and "kind" in mend:
        data[f"taken:{name}"] = str(mend["kind"])
        if name in names:
            for field in ("kind", "unknown"):  # the page posts those that the column had before
                data.pop(f"{field}-{names.index(name)}", None)
    return data


def remedy_of(post: QueryDict) -> dict[str, Any]:
    """Return the remedy of the pressed button, or an empty dict."""
    try:
        mend = json.loads(post.get("mend", ""))
    except ValueError:
        return {}
    return mend if isinstance(mend, dict) else {}


def moved_choices(post: QueryDict, before: list[str], names: list[str]) -> QueryDict:
    """Move each choice to the new position of its column. `before` are the columns that the page showed."""
    if before == names:
        return post
    data = post.copy()
    for what in COLUMN_FIELDS:
        values = {name: data.pop(f"{what}-{i}")[-1] for i, name in enumerate(before) if f"{what}-{i}" in data}
        for name in values.keys() & set(names):
            data[f"{what}-{names.index(name)}"] = values[name]
    return data


def findings_card(findings: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the findings of the intake report for a page, each with value and label of its button."""
    return [
        {
            **own,
            "title": FINDING_TITLES.get(own["kind"], own["kind"]),
            "value": json.dumps(own["mend"]),
            "button": _button(own["mend"]),
        }
        for own in findings
    ]


def _button(mend: Mapping[str, Any]) -> str:
    if mend.get("header") is False:
        return "Read the first line as data"
    if "merge" in mend:
        return "Merge the spellings"
    if "missing" in mend:
        return "Read as empty cells"
    if "role" in mend:
        return "Leave the column out" if mend["role"] == "ignored" else "Use the column"
    kind = str(mend.get("kind", ""))
    return (
        "Read as dates" if kind.startswith("date:") else {"text": "Keep as text", RANKS: "Use the order"}.get(kind, "")
    )


def as_query(reading: ReadOptions) -> str:
    """Return the options as a query string, or "" if everything is detected."""
    options = {"delimiter": reading.delimiter, "encoding": reading.encoding, "header": "" if reading.header else "no"}
    options |= {"sheet": reading.sheet, "given": json.dumps(reading.given) if reading.given else ""}
    chosen = {name: value for name, value in options.items() if value}
    return f"?{urlencode(chosen)}" if chosen else ""


def switch_words(switch: str) -> str:
    """Describe a parsing choice such as `number:,.` by an example: `numbers such as 1.234,5`."""
    kind, _, form = switch.partition(":")
    if kind == "number":
        if not form:
            return "numbers, signs detected"
        decimal = form[:1]
        if "/" in form:
            return f"numbers such as 1234{decimal}5 or 1234{other_sign(decimal)}5"
        thousands = form[1:2]
        return f"numbers such as 1{thousands}234{decimal}5"
    if kind == "date":
        return f"dates such as {EXAMPLE_DATES.get(form, form)}" if form else "dates"
    return {"time": "times such as 14:05", "binary": "two values", RANKS: f"ranks {form}".strip()}.get(kind, kind)


def column_records(
    columns: Iterable[ColumnReading], names: Iterable[str], chosen_kinds: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return a record for each column of the file: how it is parsed, the reason, and the alternatives.

    Columns that need a decision come first, plain ones last.
    """
    readings = {reading.name: reading for reading in columns}
    records = []
    for name in names:
        own = readings.get(name) or ColumnReading(name=name, taken_for="plain")
        switches = dict.fromkeys((chosen_kinds.get(name, ""), *own.choices, *KINDS_OFFERED))
        records.append(
            {
                "name": name,
                "words": own.words,
                "reason": own.question or own.reason,
                "open": own.taken_for == "ask",
                "offers": _offers(own) if own.taken_for == "ask" else [],
                "plain": name not in readings,
                "missing": own.missing,
                "said": chosen_kinds.get(name, ""),
                "switches": [(switch, switch_words(switch)) for switch in switches if switch],
            }
        )
    return sorted(records, key=lambda record: (record["plain"], not record["open"]))


def _offers(column: ColumnReading) -> list[dict[str, str]]:
    """Return value and label of a button for each way to read a column that is not decided."""
    mends: list[tuple[dict[str, Any], str]] = []
    for switch in column.choices:
        label = "Keep as text" if switch == TEXT else f"Read as {switch_words(switch)}"
        if "/" in switch and len(column.odd) == 1:
            word = column.odd[0]
            decimal = switch.partition(":")[2][0]
            label = f"Read {word[:30]} as {word[:30].replace(other_sign(decimal), decimal)}"
        mends.append(({"column": column.name, "kind": switch}, label))
    if 0 < len(column.odd) <= MOST_WORDS:
        label = "Read as an empty cell" if len(column.odd) == 1 else "Read as empty cells"
        mends.insert(len(mends) - 1, ({"column": column.name, "missing": list(column.odd)}, label))
    return [{"value": json.dumps(mend), "label": label} for mend, label in mends]


def seen_mark(reading: ReadOptions, names: list[str]) -> str:
    """Return a digest of options and shown columns. A choice applies only to the columns for which it was made."""
    text = json.dumps([reading.to_json(), names])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def choice_of(data: QueryDict, names: list[str], current: dict[str, str] | None = None) -> ColumnChoice:
    """Parse kinds, roles, policies, units, special values and target from the form.

    Column i has the fields kind-i, role-i, missing-i, unit-i and so on. Raises DataError for special values that are
    not numbers.
    """
    kinds: dict[str, ColumnKind] = {}
    missing: dict[str, MissingPolicy] = {}
    unknown: dict[str, UnknownPolicy] = {}
    units: dict[str, str] = {}
    special: dict[str, tuple[float, ...]] = {}
    meanings: dict[str, dict[str, str]] = {}
    ignore = []
    target = data.get("target") or None
    for i, name in enumerate(names):
        if data.get(f"role-{i}") == "ignored":
            ignore.append(name)
            continue
        kind = data.get(f"kind-{i}", "")
        policy = data.get(f"missing-{i}", "")
        if kind in list(ColumnKind):
            kinds[name] = ColumnKind(kind)
        if policy in list(MissingPolicy):
            # only a categorical column can have a category for missing values
            allowed = policy != MissingPolicy.CATEGORY or kinds.get(name) is ColumnKind.CATEGORICAL
            missing[name] = MissingPolicy(policy) if allowed else MissingPolicy.LEARN
        # where another kind was chosen, the field shows the policy of the categories before
        has_categories = kinds.get(name, ColumnKind.CATEGORICAL) is ColumnKind.CATEGORICAL
        if has_categories and data.get(f"unknown-{i}") in list(UnknownPolicy):
            unknown[name] = UnknownPolicy(data[f"unknown-{i}"])
        units[name] = data.get(f"unit-{i}", "").strip()[:40]
        if f"special-{i}" in data:
            special[name] = parse_codes(data[f"special-{i}"], name)
            meanings[name] = parse_meanings(data[f"special-{i}"])
    return ColumnChoice(
        target=target,
        kinds=kinds,
        missing=missing,
        unknown=unknown,
        units=units,
        special=special,
        meanings=meanings,
        ignore=ignore,
    )
