"""Read the bytes of a file: size limits, gzip and text encodings."""

from __future__ import annotations

import codecs
import io
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from trainer.data.formats import cp1252
from trainer.errors import DataError

PARQUET_MAGIC = b"PAR1"
ARROW_MAGIC = b"ARROW1"
GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGIC = b"PK\x03\x04"
OLE_MAGIC = b"\xd0\xcf\x11\xe0"
CHUNK = 1 << 20
TO_TRY = "cp1252 (Western European Windows), latin-1 or utf-16"
WESTERN = "The file is not UTF-8. As Western European Windows (cp1252) it has “{}” in line {:,}: if that looks wrong, choose another encoding."
OTHER_FORMATS = (
    (ZIP_MAGIC, "a zip archive or a damaged Excel workbook: save the sheet as .xlsx or .csv"),
    (OLE_MAGIC, "an old Excel workbook (.xls): save it as .xlsx or .csv"),
    (b"%PDF", "a PDF document: save the table as CSV"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"SQLite format 3", "an SQLite database: export the table as CSV"),
    (b"FEA1", "a Feather file of version 1: save it as version 2"),
    (b"\xff\xff\xff\xff", "an Arrow stream: save it as an Arrow file"),
    (b"BZh", "a bzip2 archive: unpack it, or use gzip"),
    (b"\xfd7zXZ", "an xz archive: unpack it, or use gzip"),
    (b"(\xb5/\xfd", "a zstd archive: unpack it, or use gzip"),
    (b"<!DOCTYPE", "an HTML page: save the table as CSV"),
    (b"<html", "an HTML page: save the table as CSV"),
    (b"<?xml", "an XML document: save the table as CSV"),
    (b"$FL2", "an SPSS file (.sav): save it as CSV or Parquet"),
    (b"$FL3", "an SPSS file (.zsav): save it as CSV or Parquet"),
    (b"<stata_dta>", "a Stata file (.dta): save it as CSV or Parquet"),
    *(
        (bytes((version, order, 1, 0)), "a Stata file (.dta): save it as CSV or Parquet")
        for version in (113, 114, 115)
        for order in (1, 2)
    ),
    (bytes(12) + b"\xc2\xea\x81\x60", "a SAS file (.sas7bdat): save it as CSV or Parquet"),
    (b"RDX2\n", "an R workspace (.RData): save the table as CSV or Parquet"),
    (b"RDX3\n", "an R workspace (.RData): save the table as CSV or Parquet"),
    (b"X\n\x00", "an R object (.rds): save the table as CSV or Parquet"),
    (b"Obj\x01", "an Avro file: save it as CSV or Parquet"),
    (b"\x89HDF", "an HDF5 file: save the table as CSV or Parquet"),
    (b"\x93NUMPY", "a NumPy array: save it as CSV or Parquet"),
    (b"\x80\x04\x95", "a Python pickle: save the table as CSV or Parquet"),
    (b"\x80\x05\x95", "a Python pickle: save the table as CSV or Parquet"),
)
JSON_START = re.compile(rb'\[\s*[\[{]|\{\s*"')


@dataclass(frozen=True, kw_only=True)
class ReadLimits:
    """The largest file (bytes as stored, and after unpacking) and the largest table that are read."""

    bytes: int = 200 * 10**6
    unpacked_bytes: int = 10**9
    rows: int = 2 * 10**6
    columns: int = 5_000
    cells: int = 10**8
    line_bytes: int = 10**7


class DecodedText(NamedTuple):
    """Text as UTF-8 bytes without byte order mark, and the file's encoding with reason and certainty (0 to 1)."""

    utf8: bytes
    encoding: str
    reason: str
    sure: float


def is_gzip(path: Path) -> bool:
    """Return whether the file begins like a gzip file."""
    with path.open("rb") as stream:
        return stream.read(len(GZIP_MAGIC)) == GZIP_MAGIC


def read_bytes(path: Path, limits: ReadLimits) -> bytes:
    """Return the content of a file, unpacked if gzipped; raise DataError if it is missing, empty or too large."""
    try:
        with path.open("rb") as stream:
            # Python allocates a buffer of the requested size, so ask for no more than the file has, plus one byte
            content = stream.read(min(limits.bytes, path.stat().st_size) + 1)
    except OSError as error:
        raise DataError(f"The file '{path.name}' cannot be read: {error.strerror or error}.") from error
    if not content:
        raise DataError("The file is empty. Choose a file with a header line and rows.")
    if len(content) > limits.bytes:
        raise DataError(
            f"The file is larger than {limits.bytes:,} bytes. Take a sample of the rows, or leave columns out."
        )
    return _unpack(content, limits) if content[:2] == GZIP_MAGIC else content


def _unpack(content: bytes, limits: ReadLimits) -> bytes:
    pieces = io.BytesIO()  # BytesIO grows in place, while joining a list of pieces would copy everything at the end
    at = 0
    try:
        while content[at : at + 2] == GZIP_MAGIC:  # a gzip file may consist of several members
            at = _unpack_member(content, at, pieces, limits)
    except zlib.error as error:
        raise DataError(f"The gzip file is damaged: {error}. Compress it again.") from error
    unpacked = pieces.getvalue()
    if not unpacked:
        raise DataError("The file is empty. Choose a file with a header line and rows.")
    return unpacked


def _unpack_member(content: bytes, at: int, pieces: io.BytesIO, limits: ReadLimits) -> int:
    """Append the unpacked member that begins at `at` to `pieces`; return the position after it."""
    view = memoryview(content)
    member = zlib.decompressobj(wbits=31)
    while not member.eof:
        block: bytes | memoryview = member.unconsumed_tail
        if not block:
            block = view[at : at + CHUNK]
            at += len(block)
        piece = member.decompress(block, CHUNK)
        if not piece and not block and not member.eof:
            raise DataError("The gzip file ends too early. Upload it again, or compress it again.")
        if pieces.tell() + len(piece) > limits.unpacked_bytes:
            raise DataError(
                f"The file unpacks to more than {limits.unpacked_bytes:,} bytes, the limit. Take a sample of the rows."
            )
        pieces.write(piece)
    return at - len(member.unused_data)


def refuse_other_formats(content: bytes) -> None:
    """Raise DataError for content in a known format other than CSV."""
    if content[:4] == OLE_MAGIC and "EncryptedPackage".encode("utf-16-le") in content:
        raise DataError(
            "The file is not a table but an encrypted workbook: remove its password, and save it as .xlsx or .csv."
        )
    if content[:4] == ZIP_MAGIC and b"vnd.oasis.opendocument" in content[:200]:
        raise DataError("The file is not a table but an OpenDocument spreadsheet (.ods): save it as .xlsx or .csv.")
    if content[:4] == ZIP_MAGIC and b"xl/workbook.bin" in content:
        raise DataError("The file is not a table but a binary Excel workbook (.xlsb): save it as .xlsx or .csv.")
    if content[:3] == content[-4:-1] == b"ORC":
        raise DataError("The file is not a table but an ORC file: save it as Parquet or CSV.")
    head = content[:64].lstrip()
    for magic, what in OTHER_FORMATS:
        if head.lower().startswith(magic.lower()):
            raise DataError(f"The file is not a table but {what}.")
    if JSON_START.match(head):
        raise DataError("The file is not a table but JSON: save it as CSV or Parquet, with one column for each value.")


def decode(content: bytes, encoding: str | None) -> DecodedText:
    """Decode a file; if `encoding` is None, try its byte order mark, UTF-8, then cp1252 if it reads well."""
    reason = "The encoding was given."
    sure = 1.0
    silent = encoding is None
    if encoding is None:
        encoding, reason = _by_first_bytes(content)
    try:
        name = codecs.lookup(encoding).name
        if not getattr(codecs.lookup(encoding), "_is_text_encoding", True):
            raise LookupError(encoding)
    except (LookupError, ValueError) as error:
        raise DataError(f"The encoding '{encoding}' is not known. Try utf-8, {TO_TRY}.") from error
    try:
        utf8 = _to_utf8(content, name)
    except UnicodeError as error:
        example_word = cp1252.example(content) if silent and encoding == "utf-8" else None
        if example_word is None:
            raise _undecodable(content, name, error) from error
        encoding = cp1252.ENCODING
        reason = WESTERN.format(*example_word)
        sure = cp1252.SURE
        utf8 = _recode(content, encoding)
    utf8 = utf8.removeprefix(codecs.BOM_UTF8)
    zero = utf8.find(b"\0")
    if zero >= 0:
        hint = "It may be text in utf-16: choose that encoding." if utf8.count(b"\0") > len(utf8) // 4 else ""
        raise DataError(f"The file is not text: byte {zero + 1} is zero. {hint or 'Save the table as CSV in UTF-8.'}")
    strange = sum(utf8[: 1 << 16].count(bytes([c])) for c in (*range(1, 9), *range(14, 32)))
    if strange * 20 > len(utf8[: 1 << 16]):
        raise DataError("The file is not text: it is full of control characters. Save the table as CSV in UTF-8.")
    return DecodedText(utf8=utf8, encoding=encoding, reason=reason, sure=sure)


def _by_first_bytes(content: bytes) -> tuple[str, str]:
    if content.startswith(codecs.BOM_UTF8):
        return "utf-8-sig", "The file begins with the mark of UTF-8."
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16", "The file begins with the mark of UTF-16."
    return "utf-8", "All bytes are valid UTF-8."


def _to_utf8(content: bytes, name: str) -> bytes:
    if name in ("utf-8", "utf-8-sig"):
        # only the validity matters, so decode in pieces and discard the text to save memory
        decoder = codecs.getincrementaldecoder("utf-8")()
        for start in range(0, len(content), 8 * CHUNK):
            try:
                decoder.decode(content[start : start + 8 * CHUNK])
            except UnicodeDecodeError:
                content.decode("utf-8")  # this raises an error with the position in the whole file
        decoder.decode(b"", final=True)
        return content
    return _recode(content, name)


def _recode(content: bytes, name: str) -> bytes:
    """Convert content to UTF-8 in pieces, because a Python string takes up to four bytes per character."""
    make = codecs.lookup(name).incrementaldecoder
    if make is None:
        return content.decode(name).encode("utf-8")
    out = io.BytesIO()
    decoder = make()
    try:
        for start in range(0, len(content), CHUNK):
            out.write(decoder.decode(content[start : start + CHUNK]).encode("utf-8"))
        out.write(decoder.decode(b"", final=True).encode("utf-8"))
    except UnicodeDecodeError:
        content.decode(name)  # this raises an error with the position in the whole file
        raise
    return out.getvalue()


def _undecodable(content: bytes, name: str, error: UnicodeError) -> DataError:
    start = error.start if isinstance(error, UnicodeDecodeError) else 0
    if isinstance(error, UnicodeDecodeError) and len(error.object) < len(content):
        start = len(content) - len(error.object)  # an incremental decoder reports only the last, incomplete character
    line = content.count(b"\n", 0, start) + 1
    what = f"byte {start + 1} (line {line}) is 0x{content[start]:02x}" if start < len(content) else "the end is missing"
    others = TO_TRY if name.startswith("utf-8") else f"utf-8, utf-8-sig, {TO_TRY}"
    return DataError(
        f"The file is not valid {name}: {what}. Choose another encoding: {others}.",
        problems=(f"Line {line}: byte {start + 1} is not {name}.",),
    )
