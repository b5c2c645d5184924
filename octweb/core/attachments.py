"""Make responses downloads."""

from __future__ import annotations

from typing import TypeVar

from django.http import HttpResponseBase

Answer = TypeVar("Answer", bound=HttpResponseBase)


def as_file(answer: Answer, name: str) -> Answer:
    """Make the response a download and return it. `name` must be safe in a header; it is used unchanged."""
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
