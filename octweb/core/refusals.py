"""What a page says when an action is refused: the reason, as a message on the page that is shown next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib import messages
from django.http import HttpRequest

from octweb.core.problems import Conflict, Unprocessable
from trainer.errors import ParameterError


@contextmanager
def refusals_said(request: HttpRequest, cannot: str = "") -> Iterator[None]:
    """Turn a refusal into a message; `cannot` says what cannot be done with bad parameters."""
    try:
        yield
    except (Conflict, Unprocessable) as error:
        messages.warning(request, str(error.detail))
    except ParameterError as error:
        messages.warning(request, f"{cannot}: {error}" if cannot else str(error))
