"""Read the fields of a PMML document: columns, target and weighted sums."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from trainer.convert.xml_tree import Element
from trainer.errors import ConversionError
from trainer.table import MISSING_CATEGORY, ColumnKind, ColumnSchema, MissingPolicy
from trainer.tree.splits.base import EMPTY, VALUE, Term

NUMBERS = {"double", "float", "integer"}
WORDS = {"string", "integer"}
TARGETS = {"target", "predicted"}


class WeightedSum(NamedTuple):
    """The terms of a derived field, each with the value that fills its empty cells.

    A fill value of NaN means that an empty cell makes the sum missing. Indicators also have NaN, since they
    always have a value.
    """

    terms: tuple[Term, ...]
    fills: tuple[float, ...]

    @property
    def has_fills(self) -> bool:
        """Whether some term of a number has a value although its cell is empty."""
        return any(level == EMPTY for _, level, _ in self.terms) or any(not math.isnan(fill) for fill in self.fills)


@dataclass(frozen=True, kw_only=True)
class Fields:
    """The fields of a document; `schema` is in the order of the mining schema.

    PMML rounds the values of the `single` columns to single precision. `sums` are the derived fields; an indicator is a sum of one
    term.
    """

    schema: tuple[ColumnSchema, ...]
    target: str
    classes: tuple[str, ...]
    single: frozenset[int]
    sums: Mapping[str, WeightedSum]

    def column(self, name: str | None, place: Element) -> int:
        """Return the column of a field; raises ConversionError if there is none."""
        for j, column in enumerate(self.schema):
            if column.name == name:
                return j
        raise ConversionError(
            f"{place} uses the field '{name}', which is not an active field of the MiningSchema. Add it there, or export the document again."
        )


def fields_of(root: Element, model: Element) -> Fields:
    """Return the fields of a document; raises ConversionError for fields that no column or sum can represent."""
    dictionary = root.first("DataDictionary")
    mining = model.first("MiningSchema")
    if dictionary is None or mining is None:
        raise ConversionError(
            "The document has no DataDictionary, or its model has no MiningSchema. Export the document again."
        )
    data = {field.get("name"): field for field in dictionary.all("DataField")}
    words = _words_of(model)
    schema: list[ColumnSchema] = []
    single: set[int] = set()
    target = "class"
    classes = tuple[str, ...]()
    for field in mining.all("MiningField"):
        name = field.get("name")
        if name not in data:
            raise ConversionError(
                f"{field} names the field '{name}', which the DataDictionary lacks. Add a DataField for it."
            )
        if field.get("usageType", "active") in TARGETS:
            target = str(name)
            classes = tuple(_values(data[name]))
        elif field.get("usageType", "active") == "active":
            if data[name].get("dataType") == "float":
                single.add(len(schema))
            schema.append(_column(data[name], field, words.get(str(name), [])))
    bare = Fields(schema=tuple(schema), target=target, classes=classes, single=frozenset(single), sums={})
    return _with_sums(
        bare,
        [
            *_derived_fields(root.first("TransformationDictionary")),
            *_derived_fields(model.first("LocalTransformations")),
        ],
    )


def _values(field: Element) -> list[str]:
    return [str(v.get("value")) for v in field.all("Value") if v.get("property", "valid") == "valid"]


def _words_of(model: Element) -> dict[str, list[str]]:
    """Return the values that predicates name, by field; they are the categories of fields that list none."""
    categories: dict[str, list[str]] = {}
    stack = list(model.all("Node"))
    while stack:
        element = stack.pop()
        if element.name == "SimplePredicate" and element.get("value") is not None:
            categories.setdefault(str(element.get("field")), []).append(str(element.get("value")))
        elif element.name == "SimpleSetPredicate":
            categories.setdefault(str(element.get("field")), []).extend(array_of(element))
        stack += element.children
    return categories


def array_of(predicate: Element) -> list[str]:
    """Return the words in the array of a set predicate; blanks separate them, and quotes enclose words with blanks."""
    array = predicate.first("Array")
    if array is None:
        raise ConversionError(f"{predicate} has no <Array> of values. Add it, or export the document again.")
    words: list[str] = []
    text = array.text
    i = 0
    while i < len(text):
        if text[i].isspace():
            i += 1
        elif text[i] == '"':
            word, i = _read_quoted(text, i + 1, array)
            words.append(word)
        else:
            end = next((k for k in range(i, len(text)) if text[k].isspace()), len(text))
            words.append(text[i:end])
            i = end
    if array.get("n") is not None and str(len(words)) != array.get("n"):
        raise ConversionError(
            f"{array} states {array.get('n')} values, but has {len(words)}. Correct its 'n', or put values with blanks in quotes."
        )
    return words


def _read_quoted(text: str, start: int, array: Element) -> tuple[str, int]:
    """Return the quoted word that begins at `start`, and the position after its closing quote."""
    word = []
    i = start
    while i < len(text):
        if text[i] == "\\" and text[i + 1 : i + 2] == '"':
            word.append('"')
            i += 2
        elif text[i] == '"':
            return "".join(word), i + 1
        else:
            word.append(text[i])
            i += 1
    raise ConversionError(f'{array} has a quote that is not closed. Close it, or write \\" for a quote inside a value.')


def _column(data: Element, mining: Element, words: list[str]) -> ColumnSchema:
    name = str(data.get("name"))
    kind = data.get("optype")
    if data.get("isCyclic", "0") != "0" or mining.get("outliers", "asIs") != "asIs":
        raise ConversionError(
            f"{mining}: the field '{name}' is cyclic or changes outliers, and neither can be converted. Export the tree without this."
        )
    instead = mining.get("missingValueReplacement")
    if kind == "continuous" and data.get("dataType") in NUMBERS and instead is None:
        return ColumnSchema(name=name, kind=ColumnKind.NUMERIC)
    if kind in ("categorical", "ordinal") and data.get("dataType") in WORDS:
        categories = tuple(dict.fromkeys([*_values(data), *([] if _values(data) else words)]))
        if instead is None:
            return ColumnSchema(name=name, kind=ColumnKind.CATEGORICAL, categories=categories)
        if instead == MISSING_CATEGORY:
            with_missing = categories if instead in categories else (*categories, instead)
            return ColumnSchema(
                name=name, kind=ColumnKind.CATEGORICAL, categories=with_missing, missing=MissingPolicy.CATEGORY
            )
    if instead is not None:
        raise ConversionError(
            f"{mining} replaces a missing '{name}' by '{instead[:40]}', which cannot be converted. Remove missingValueReplacement."
        )
    raise ConversionError(
        f"{data}: the field '{name}' has the optype {kind} and the dataType {data.get('dataType')}, which cannot be converted. Use a continuous number or a categorical text."
    )


# -- derived fields ----------------------------------------------------------------------------------------------------------


def _derived_fields(parent: Element | None) -> list[Element]:
    if parent is None:
        return []
    if odd := next((c for c in parent.children if c.name not in ("DerivedField", "Extension")), None):
        raise ConversionError(f"{odd} cannot be converted. Export one plain classification tree without it.")
    return list(parent.all("DerivedField"))


def _with_sums(bare: Fields, derived: list[Element]) -> Fields:
    sums: dict[str, WeightedSum] = {}
    for field in derived:
        elements = [child for child in field.children if child.name != "Extension"]
        if len(elements) != 1 or field.get("dataType") != "double":
            raise ConversionError(
                f"{field} is not a weighted sum of columns with the dataType double. Only such derived fields can be converted."
            )
        weighted_sum = _read_sum(elements[0], bare, sums)
        open_ends = [
            j for (j, level, _), fill in zip(*weighted_sum, strict=True) if level == VALUE and math.isnan(fill)
        ]
        if weighted_sum.has_fills and open_ends:
            name = bare.schema[open_ends[0]].name
            raise ConversionError(
                f"{field} replaces empty cells of some columns, but not of '{name}'. Replace them in all columns of the sum, or in none."
            )
        sums[str(field.get("name"))] = weighted_sum
    return replace(bare, schema=_with_fills(bare.schema, sums), sums=sums)


def _with_fills(schema: tuple[ColumnSchema, ...], sums: Mapping[str, WeightedSum]) -> tuple[ColumnSchema, ...]:
    """Return the columns with the fill values of their empty cells; raises ConversionError if two sums differ in one."""
    fills: dict[int, float] = {}
    for weighted_sum in sums.values():
        for (j, _, _), fill in zip(*weighted_sum, strict=True):
            if not math.isnan(fill) and fills.setdefault(j, fill) != fill:
                raise ConversionError(
                    f"An empty cell of '{schema[j].name}' counts as {fills[j]!r} in one sum and as {fill!r} in another. Use one value in all sums."
                )
    return tuple(replace(column, fill=fills[j]) if j in fills else column for j, column in enumerate(schema))


def _read_sum(element: Element, bare: Fields, sums: Mapping[str, WeightedSum]) -> WeightedSum:
    """Parse a sum whose terms are added from left to right, as in a linear split."""
    if element.name == "NormDiscrete":
        return WeightedSum((_category(element, bare),), (math.nan,))
    parts = element.children
    function = element.get("function") if element.name == "Apply" else None
    if function == "+" and len(parts) == 2:
        last = _read_sum(parts[1], bare, sums)
        if len(last.terms) == 1:
            first = _read_sum(parts[0], bare, sums)
            return WeightedSum(first.terms + last.terms, first.fills + last.fills)
    if function == "*" and len(parts) == 2 and parts[0].name == "Constant":
        (j, level, _), fill = _factor(parts[1], bare, sums)
        return WeightedSum(((j, level, _number(parts[0])),), (fill,))
    choice = function == "if" and [p.name for p in parts] == ["Apply", "Constant", "Constant"]
    if choice and (_number(parts[1]), _number(parts[2])) == (1.0, 0.0):
        return WeightedSum(((_missing_column(parts[0], bare), EMPTY, 1.0),), (math.nan,))
    raise ConversionError(
        f"{element} is not part of a weighted sum of columns. Only such derived fields can be converted."
    )


def _category(element: Element, bare: Fields) -> Term:
    """Return the indicator of a category as a term."""
    j = bare.column(element.get("field"), element)
    value = element.get("value")
    column = bare.schema[j]
    if value not in column.categories or element.get("mapMissingTo") != "0":
        raise ConversionError(f'{element} needs a category that the field lists, and mapMissingTo="0". Correct it.')
    return j, column.categories.index(value), 1.0


def _factor(element: Element, bare: Fields, sums: Mapping[str, WeightedSum]) -> tuple[Term, float]:
    """Return the variable factor of a product as a term, and the value that fills its empty cells.

    The factor is a column, an indicator, or a column whose empty cells are filled.
    """
    if element.name == "FieldRef":
        return _reference(element, bare, sums), math.nan
    parts = element.children
    if element.get("function") == "if" and [p.name for p in parts] == ["Apply", "Constant", "FieldRef"]:
        term = _reference(parts[2], bare, sums)
        if term[1] == VALUE and _missing_column(parts[0], bare) == term[0]:
            return term, _number(parts[1])
    raise ConversionError(
        f"{element} is neither a column nor a column with a constant for missing values. Only these can be terms of a sum."
    )


def _missing_column(element: Element, bare: Fields) -> int:
    """Return the column that an `isMissing` element names."""
    parts = element.children
    if element.get("function") != "isMissing" or [p.name for p in parts] != ["FieldRef"]:
        raise ConversionError(f"{element} does not test whether a column is missing. Use isMissing with one FieldRef.")
    j = bare.column(parts[0].get("field"), parts[0])
    if bare.schema[j].kind is ColumnKind.CATEGORICAL:
        raise ConversionError(
            f"{element}: '{bare.schema[j].name}' is not a column of numbers. Test only columns of numbers with isMissing."
        )
    return j


def _reference(element: Element, bare: Fields, sums: Mapping[str, WeightedSum]) -> Term:
    name = str(element.get("field"))
    if name in sums:
        terms = sums[name].terms
        if len(terms) == 1 and terms[0][1] != VALUE and terms[0][2] == 1.0:
            return terms[0]
        raise ConversionError(
            f"{element} is a sum inside a sum, which cannot be converted. Write all terms into one sum."
        )
    j = bare.column(name, element)
    if bare.schema[j].kind is ColumnKind.CATEGORICAL or j in bare.single:
        raise ConversionError(
            f"{element}: '{name}' is not a number with the dataType double. Declare it as double, or leave it out of the sum."
        )
    return j, VALUE, 1.0


def _number(element: Element) -> float:
    try:
        return float(element.text)
    except ValueError as error:
        raise ConversionError(f"{element} has '{element.text[:40]}', which is not a number. Correct it.") from error
