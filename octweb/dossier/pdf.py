"""Print the HTML document as PDF with PlutoPrint."""

from __future__ import annotations

import importlib.util

MISSING = "There is no dossier.pdf, because PlutoPrint is not installed. Install it with: pip install 'octweb[pdf]' or pip install plutoprint"


def can_print() -> bool:
    """Return whether PlutoPrint is installed."""
    return importlib.util.find_spec("plutoprint") is not None


def to_pdf(html: str, *, title: str) -> bytes:
    """Print an HTML document as A4 PDF. Raises ImportError without PlutoPrint."""
    import io

    import plutoprint

    book = plutoprint.Book(plutoprint.PAGE_SIZE_A4, media=plutoprint.MEDIA_TYPE_PRINT)
    book.load_html(html)
    book.set_metadata(plutoprint.PDF_METADATA_TITLE, title)
    stream = io.BytesIO()
    book.write_to_pdf_stream(stream)
    return stream.getvalue()
