"""Find the folders of octweb."""

from __future__ import annotations

import sys

import pytest

from octweb import places


@pytest.mark.parametrize(
    ("prefix", "installed", "expected"),
    [
        (".venv", False, ".venv/numba-cache"),  # what `make run` uses
        ("elsewhere", False, "data/numba"),
        (".venv", True, "data/numba"),
    ],
)
def test_kernels_belong_to_checkout_with_own_environment(monkeypatch, tmp_path, prefix, installed, expected):
    (tmp_path / ".venv").mkdir()
    monkeypatch.setattr(places, "ROOT", tmp_path)
    monkeypatch.setattr(places, "INSTALLED", installed)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / prefix))
    assert places.kernels(tmp_path / "data") == tmp_path / expected


def test_kernels_go_to_data_folder_without_writable_environment(monkeypatch, tmp_path):
    monkeypatch.setattr(places, "ROOT", tmp_path)  # it has no .venv
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    assert places.kernels(tmp_path / "data") == tmp_path / "data" / "numba"
