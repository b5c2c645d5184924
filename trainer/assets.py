"""Locate the folder of styles and scripts without importing what serves them."""

from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_PACKED = _ROOT / "octweb" / "_packed"  # this folder exists only in an installed wheel (pyproject.toml)
STATIC = (_PACKED if _PACKED.is_dir() else _ROOT) / "static"
