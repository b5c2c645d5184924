"""The document as PDF, printed from the same HTML by PlutoPrint, which pip installs as one wheel without libraries of the system."""

from __future__ import annotations

import importlib.util

MISSING = "There is no dossier.pdf, because PlutoPrint is not installed. Install it with: pip install 'octweb[pdf]' or pip install plutoprint"


def can_print() -> bool:
    """Whether the library is there."""
    return importlib.util.find_spec("plutoprint") is not None


def to_pdf(html: str, *, title: str) -> bytes:
    """The pages of the document, A4, as PDF; raises ImportError without the library."""
    import io

    import plutoprint

    book = plutoprint.Book(plutoprint.PAGE_SIZE_A4, media=plutoprint.MEDIA_TYPE_PRINT)
    book.load_html(html)
    book.set_metadata(plutoprint.PDF_METADATA_TITLE, title)
    stream = io.BytesIO()
    book.write_to_pdf_stream(stream)
    return stream.getvalue()
