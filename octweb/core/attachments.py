"""Turn responses into downloads; shared by six apps."""

from __future__ import annotations

from typing import TypeVar

from django.http import HttpResponseBase

Answer = TypeVar("Answer", bound=HttpResponseBase)


def as_file(answer: Answer, name: str) -> Answer:
    """Mark the response as a download, and return it. `name` is used unchanged, so it must be safe in a header."""
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
