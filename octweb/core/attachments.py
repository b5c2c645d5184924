"""Responses that a browser saves as a file."""

from __future__ import annotations

from typing import TypeVar

from django.http import HttpResponseBase

Answer = TypeVar("Answer", bound=HttpResponseBase)


def as_file(answer: Answer, name: str) -> Answer:
    """Make the response a download with this name. Other characters than letters, digits, '.', '-' and '_' are replaced."""
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
