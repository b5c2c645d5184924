"""Answers that a browser stores as a file."""

from __future__ import annotations

from typing import TypeVar

from django.http import HttpResponseBase

Answer = TypeVar("Answer", bound=HttpResponseBase)


def as_file(answer: Answer, name: str) -> Answer:
    """The answer, to be stored under this name: letters, digits, dots, hyphens and underscores, so that it needs no quoting."""
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
