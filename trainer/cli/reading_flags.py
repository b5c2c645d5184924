"""Define options for reading a table, for all columns or single ones."""

from __future__ import annotations

import json
import shlex
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainer.data.formats.file_bytes import ReadLimits
from trainer.data.parsing import EVERY, ColumnParsing, ParsingChoices
from trainer.data.parsing.given import WORDS
from trainer.errors import DataError, ModelFileError, ParameterError
from trainer.table import MissingPolicy, UnknownPolicy

DELIMITER_WORDS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "space": " "}
# limits for files of the user who runs the command
OWN_FILES = ReadLimits(bytes=10**11, unpacked_bytes=10**11, rows=10**9, columns=10**5, cells=10**11)
POLICIES = tuple(str(policy) for policy in MissingPolicy)
UNKNOWN_POLICIES = tuple(str(policy) for policy in UnknownPolicy)


def add_file_flags(parser: ArgumentParser) -> None:
    """Add --delimiter, --encoding, --no-header and --sheet, for every command that reads a file of rows."""
    parser.add_argument(
        "--delimiter", metavar="SIGN", help="what stands between values: a sign, or comma, semicolon, tab, bar, space"
    )
    parser.add_argument("--encoding", metavar="NAME", help="as utf-8, cp1252, utf-16; detected if it is not given")
    parser.add_argument(
        "--sheet", metavar="NAME", help="the sheet of an .xlsx file; the first visible one if not given"
    )
    parser.add_argument(
        "--no-header",
        action="store_true",
        help="the first line is a row; the columns are called 'column 1', 'column 2', ...",
    )


def add_reading_flags(parser: ArgumentParser, merge: str = "--merge") -> None:
    """Add all options on reading a table for training; `merge` is the name of the option that merges spellings."""
    add_file_flags(parser)
    parser.add_argument(
        "--decimal",
        action="append",
        default=[],
        metavar="[COLUMN=]SIGN",
        help="the decimal sign: '.' or ',' (or point, comma)",
    )
    parser.add_argument(
        "--thousands",
        action="append",
        default=[],
        metavar="[COLUMN=]SIGN",
        help="what stands between thousands: '.', ',', space, apostrophe, none",
    )
    parser.add_argument(
        "--kind",
        action="append",
        default=[],
        metavar="COLUMN=KIND",
        help="text, number, number:, (decimal comma), number:,. (with points between thousands), number:., (with commas), "
        "number:,/. (comma or point as decimal sign), date, "
        "date:dd/mm/yyyy, time, binary",
    )
    parser.add_argument("--skip-top", type=_count, metavar="N", help="lines above the table; detected if not given")
    parser.add_argument("--skip-bottom", type=_count, metavar="N", help="lines below the table; detected if not given")
    parser.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="[COLUMN=]learn|drop|category|refuse|WORD",
        help="what happens to empty cells (learn), or a word that means that a cell is empty, as in --missing unknown",
    )
    parser.add_argument(
        "--unknown",
        action="append",
        default=[],
        metavar="[COLUMN=]warn|branch|refuse",
        help="what predictions do with a category that training did not have: answer with a note (warn), answer, or refuse the row",
    )
    parser.add_argument(
        merge,
        dest="merge",
        action="append",
        default=[],
        metavar="COLUMN",
        help="read all spellings of a value in a column as the most frequent one",
    )
    parser.add_argument(
        "--reading", metavar="FILE", help="JSON of how the table was read before; it is read in the same way again"
    )


def given_of(options: dict[str, Any]) -> ParsingChoices:
    """Return the user's choices about the table from the options; raise ParameterError."""
    try:
        return ParsingChoices(
            decimal=_by_column(options, "decimal", WORDS),
            thousands=_by_column(options, "thousands", WORDS),
            kinds=_kinds(options),
            missing=_missing_words(options),
            merge={name: {} for name in _split_list(options.get("merge"))},
            skip_top=options.get("skip_top"),
            skip_bottom=options.get("skip_bottom"),
            **file_options(options),
        )
    except DataError as error:
        raise ParameterError({"kind": str(error)}) from error


def file_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return delimiter, encoding, header and sheet; None for an option that is not given."""
    sign = options.get("delimiter")
    return {
        "delimiter": DELIMITER_WORDS.get(sign, sign) if sign else None,
        "encoding": options.get("encoding") or None,
        "header": False if options.get("no_header") else None,
        "sheet": options.get("sheet") or None,
    }


def reading_of_file(options: dict[str, Any]) -> ColumnParsing | None:
    """Return the reading in the file of --reading; raise ModelFileError if the file has none."""
    if not options.get("reading"):
        return None
    try:
        return ColumnParsing.from_json(json.loads(Path(options["reading"]).read_text(encoding="utf-8")))
    except (ValueError, AttributeError) as error:
        raise ModelFileError(
            f"The file of --reading is not the JSON of a reading: {error}. Give the JSON of an earlier reading."
        ) from error


def policy_of(options: dict[str, Any]) -> MissingPolicy:
    """Return the missing-value policy for all columns; the last one given wins."""
    policies = [word for word in _split_list(options.get("missing")) if word in POLICIES]
    return MissingPolicy(policies[-1] if policies else MissingPolicy.LEARN)


def policies_of(options: dict[str, Any]) -> dict[str, MissingPolicy]:
    """Return the missing-value policies of single columns."""
    pairs = (word.rpartition("=") for word in _split_list(options.get("missing")))
    return {name: MissingPolicy(policy) for name, _, policy in pairs if name and policy in POLICIES}


def unknown_policies(options: dict[str, Any]) -> dict[str, UnknownPolicy]:
    """Return the policy for unknown categories by column name; the key EVERY stands for all. Raise ParameterError."""
    policies = {}
    for text in options.get("unknown") or ():
        name, equals, policy = text.rpartition("=")
        if policy not in UNKNOWN_POLICIES or (equals and not name):
            allowed = ", ".join(UNKNOWN_POLICIES)
            raise ParameterError(
                {"unknown": f"'{text[:80]}' is not one of {allowed}, nor COLUMN=POLICY as in town=refuse."}
            )
        policies[name or EVERY] = UnknownPolicy(policy)
    return policies


def flags_of(mend: Mapping[str, Any]) -> str:
    """Return the command options that apply a remedy of the intake report; "" if only the table can be changed."""
    name = mend.get("column", "")
    if mend.get("header") is False:
        words = ["--no-header"]
    elif mend.get("role") == "ignored":
        words = [f"--ignore {shlex.quote(name)}"]
    elif "merge" in mend:
        words = [f"--merge {shlex.quote(name)}"]
    elif "missing" in mend:
        words = [f"--missing {shlex.quote(f'{name}={word}')}" for word in mend["missing"]]
    else:
        kind = {"numeric": "number", "categorical": "text"}.get(mend.get("kind", ""), mend.get("kind", ""))
        words = [f"--kind {shlex.quote(f'{name}={kind}')}"] if kind else []
    return " ".join(words)


def _split_list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or [])


def _missing_words(options: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    words_by_column: dict[str, tuple[str, ...]] = {}
    for item in _split_list(options.get("missing")):
        name, equals, word = item.rpartition("=")
        if word in POLICIES:
            continue
        name, word = (name, word) if equals and name else (EVERY, item)
        words_by_column[name] = (*words_by_column.get(name, ()), word)
    return words_by_column


def _by_column(options: dict[str, Any], what: str, words: dict[str, str]) -> dict[str, str]:
    signs = {}
    for item in _split_list(options.get(what)):
        name, equals, sign = item.rpartition("=")
        signs[name if equals else EVERY] = words.get(sign, sign)
    return signs


def _kinds(options: dict[str, Any]) -> dict[str, str]:
    kinds = {}
    for item in _split_list(options.get("kind")):
        name, equals, kind = item.rpartition("=")
        if not equals or not name:
            raise ParameterError({"kind": f"'{item[:80]}' does not look like COLUMN=KIND, as in weight=number."})
        kinds[name] = kind
    return kinds


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"'{text[:40]}' is not a number of lines. Write 0 or a larger whole number.")
    return int(text)
