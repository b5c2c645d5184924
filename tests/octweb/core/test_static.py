"""Collected static files: names that hold a digest, compressed with gzip alone."""

from __future__ import annotations

import gzip

from django.core.management import call_command


def test_files_are_collected_under_hashed_names_and_compressed_with_gzip(settings, tmp_path):
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = settings.STORAGES | {"staticfiles": {"BACKEND": "octweb.core.static.StaticFiles"}}
    call_command("collectstatic", interactive=False, verbosity=0)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if path.suffix == ".br"]
    styles = [path for path in files if path.suffix == ".css" and "octweb" in path.name]
    assert styles
    for style in styles:
        assert len(style.name.split(".")) > 2
        squeezed = style.with_name(style.name + ".gz")
        assert gzip.decompress(squeezed.read_bytes()) == style.read_bytes()
