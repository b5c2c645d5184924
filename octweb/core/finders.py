"""plotly.min.js as a static file, taken from the installed plotly package so that the versions always match."""

from __future__ import annotations

from pathlib import Path

import plotly
from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage

FOLDER = Path(plotly.__file__).parent / "package_data"
NAME = "plotly.min.js"
URL = f"vendor/{NAME}"


class PlotlyFinder(BaseFinder):
    """Finds `vendor/plotly.min.js`."""

    def check(self, **kwargs):
        return []

    def find(self, path, find_all=False, **kwargs):
        if path != URL:
            return []
        found = str(FOLDER / NAME)
        return [found] if find_all else found

    def list(self, ignore_patterns):
        storage = FileSystemStorage(location=FOLDER)
        storage.prefix = "vendor"
        yield NAME, storage
