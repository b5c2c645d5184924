"""Write small .xlsx workbooks part by part, including some that no spreadsheet program writes."""

from __future__ import annotations

import datetime
import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
DAY = 1  # numbers of cell styles
MOMENT = 2
CLOCK = 3
STYLES = (
    f'<styleSheet xmlns="{MAIN}"><numFmts count="1"><numFmt numFmtId="164" formatCode="yyyy-mm-dd hh:mm:ss"/></numFmts>'
    '<fonts count="1"><font/></fonts><fills count="1"><fill/></fills><borders count="1"><border/></borders>'
    '<cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="4"><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/>'
    '<xf numFmtId="21"/></cellXfs></styleSheet>'
)
FIRST_DAY = datetime.datetime(1899, 12, 30)


class Formula(NamedTuple):
    """Formula, with the value that the last program stored, if any."""

    text: str
    value: float | None = None


class Fault(NamedTuple):
    """Cell with an error."""

    text: str = "#N/A"


def workbook(
    sheets: Mapping[str, Sequence[Sequence[Any]]],
    *,
    merged: Sequence[str] = (),
    hidden_sheets: Sequence[str] = (),
    hidden_rows: Sequence[int] = (),
    parts: Mapping[str, bytes] | None = None,
) -> bytes:
    """Return a workbook. None is a cell that does not exist. `parts` replace parts with the same names."""
    states = {name: "hidden" if name in hidden_sheets else "visible" for name in sheets}
    listed = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{i}" state="{states[name]}" r:id="r{i}"/>'
        for i, name in enumerate(sheets, 1)
    )
    links = "".join(
        f'<Relationship Id="r{i}" Type="{OFFICE}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i in range(1, len(sheets) + 1)
    )
    content = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}"><Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}">{links}<Relationship Id="s" Type="{OFFICE}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": STYLES,
    }
    for i, rows in enumerate(sheets.values(), 1):
        content[f"xl/worksheets/sheet{i}.xml"] = _sheet(rows, merged, hidden_rows)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (content | dict(parts or {})).items():
            archive.writestr(name, text)
    return out.getvalue()


def _sheet(rows: Sequence[Sequence[Any]], merged: Sequence[str], hidden: Sequence[int]) -> str:
    lines = []
    for i, row in enumerate(rows, 1):
        cells = "".join(_cell(f"{_letters(j)}{i}", value) for j, value in enumerate(row) if value is not None)
        lines.append(f'<row r="{i}" hidden="{int(i in hidden)}">{cells}</row>')
    ranges = "".join(f'<mergeCell ref="{ref}"/>' for ref in merged)
    ranges = f"<mergeCells>{ranges}</mergeCells>" if merged else ""
    return f'<worksheet xmlns="{MAIN}"><sheetData>{"".join(lines)}</sheetData>{ranges}</worksheet>'


def _letters(place: int) -> str:
    return (chr(64 + place // 26) if place >= 26 else "") + chr(65 + place % 26)


def _cell(where: str, value: Any) -> str:
    if isinstance(value, Formula):
        stored = "<v/>" if value.value is None else f"<v>{value.value}</v>"
        return f'<c r="{where}"><f>{escape(value.text)}</f>{stored}</c>'
    if isinstance(value, Fault):
        return f'<c r="{where}" t="e"><v>{value.text}</v></c>'
    if isinstance(value, bool):
        return f'<c r="{where}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, (int, float)):
        return f'<c r="{where}"><v>{value!r}</v></c>'
    if isinstance(value, datetime.datetime):
        return f'<c r="{where}" s="{MOMENT}"><v>{(value - FIRST_DAY) / datetime.timedelta(days=1)!r}</v></c>'
    if isinstance(value, datetime.date):
        return f'<c r="{where}" s="{DAY}"><v>{(value - FIRST_DAY.date()).days}</v></c>'
    return f'<c r="{where}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
