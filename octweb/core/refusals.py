"""Show the reason for a refused action on the next page; shared by six apps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib import messages
from django.http import HttpRequest

from octweb.core.problems import Conflict, Unprocessable
from trainer.errors import ParameterError


@contextmanager
def refusals_said(request: HttpRequest, cannot: str = "") -> Iterator[None]:
    """Convert a refusal to a message. `cannot` is put before the message about invalid parameters."""
    try:
        yield
    except (Conflict, Unprocessable) as error:
        messages.warning(request, str(error.detail))
    except ParameterError as error:
        messages.warning(request, f"{cannot}: {error}" if cannot else str(error))
