"""Write wishes in words, and check the reasons that users give."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from trainer.errors import ParameterError
from trainer.tree.describe import counted_words, number_text
from trainer.tree.nodes import class_words
from trainer.tree.numbers import MINUS

MAX_REASON_CHARACTERS = 500  # limit on the characters of a reason
# matches only the sign before the number at the end of a question, because a column's name may contain the same sign
AT_MOST = re.compile(r" <= (-?)(?=[\d.][\d.eE+-]*$)")


def in_words(wish: str, where: Mapping[str, str] | None = None) -> str:
    """Return a wish as a sentence. `where` names places of a tree, such as "If “age ≤ 70” is no" for "n"."""
    words = wish.split(None, 2)
    if len(words) < 2:
        return wish
    place = "At the root" if words[1] == "root" else (where or {}).get(words[1], f"After {_answers(words[1])}")
    tail = words[2] if len(words) == 3 else ""
    return {
        "ask": f"{place}: ask {_question(tail)}",
        "forbid": f"{place} and below: never ask {tail}",
        "avoid": f"{place}: do not ask {tail}, it may be asked below",
        "together": f"{place} and below: never part {' and '.join(tail.rsplit(' in ', 1)[-1].split('|'))} of {tail.rsplit(' in ', 1)[0]}",
        "leaf": f"{place}: " + (f"always “{class_words([tail])[0]}”" if tail else "one answer for all rows"),
        "depth": f"{place}: at most {tail} more question{'s' if tail != '1' else ''} on a path",
    }.get(words[0], wish)


def _answers(place: str) -> str:
    """Return the answers that lead to a place: "no, no, yes" for "nny"; another text stays as it is."""
    if set(place) - {"y", "n"}:
        return place
    return ", ".join("yes" if answer == "y" else "no" for answer in place)


def _question(text: str) -> str:
    """Return a question as pages write it: "b ≤ −1.5" for "b <= -1.5"."""
    return AT_MOST.sub(lambda found: f" ≤ {MINUS if found[1] else ''}", text)


def check_reasons(reasons: Mapping[str, str], wishes: Iterable[str]) -> dict[str, str]:
    """Return the reasons by the text of their wish. Raises ParameterError for an empty or long reason, or one without its wish."""
    wish_texts = {wish.strip() for wish in wishes}
    out = {}
    for wish, text in reasons.items():
        words = " ".join(text.split())
        if wish.strip() not in wish_texts:
            raise ParameterError(
                {"reasons": f"there is no wish '{wish[:120]}' for this reason. Write the wish as it was given."}
            )
        if not words or len(words) > MAX_REASON_CHARACTERS:
            raise ParameterError(
                {
                    "reasons": f"the reason for '{wish[:120]}' has {len(words)} characters. Write 1 to {MAX_REASON_CHARACTERS} characters."
                }
            )
        out[wish.strip()] = words
    return out


def wish_lines(certificate: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the wishes of a certificate with their words, prices and reasons ("" for none).

    `price_rows` is None if the price is unknown or not in rows. `price_words` has the unit.
    """
    scale, unit = price_scale(certificate)
    lines = []
    for record in certificate.get("wishes") or ():
        price = None if record.get("price") is None else round(record["price"] * scale, 6)
        lines.append(
            {
                "wish": record["wish"],
                "words": in_words(record["wish"]),
                "price_rows": price if unit is None else None,
                "price_words": price_words(price, unit),
                "reason": str(record.get("reason") or ""),
            }
        )
    return lines


def price_scale(record: Mapping[str, Any]) -> tuple[float, str | None]:
    """Return the value of an objective of 1, and its unit: of costs, or of weights; None if it is the number of rows."""
    costs = record.get("costs")
    worth = (record.get("optimum") or {}).get("objective_cost")
    if worth is None:
        unit = record.get("count_unit") or counted_words(record)
        return record.get("n") or 0, None if unit == "rows" else unit
    return float(worth), str(costs["unit"] if costs else record.get("cost_unit") or "")


def leaf_words(record: Mapping[str, Any]) -> str:
    """Return what a leaf counts as in prices of wishes, such as "8.16 rows"; empty if leaves cost nothing."""
    penalty = float(Fraction(str(record.get("leaf_penalty") or 0)))
    scale, unit = price_scale(record)
    return price_words(penalty * scale, unit).removeprefix("+") if penalty else ""


def price_words(price: float | None, unit: str | None = None) -> str:
    """Return a signed price in rows or in `unit`: "+9 rows", "+0.5 EUR", "+9 of weight"; or "price not known"."""
    if price is None:
        return "price not known"
    size = number_text(abs(price), 4)
    rows = "row" if size == "1" else "rows"
    sign = MINUS if price < 0 else "+"
    return f"{sign}{size} {rows if unit is None else unit}".rstrip()
