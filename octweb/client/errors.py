"""Define the client's exceptions: one class per kind of refusal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any


class ClientError(Exception):
    """Base class of all exceptions of the client."""


class NoConnectionError(ClientError):
    """The server cannot be reached, or closed the connection before it answered."""


class ApiError(ClientError):
    """The server refused a call, with problem details (RFC 9457).

    Attributes
    ----------
    status : int
        The HTTP status.
    type : str
        Address of the page that explains the problem.
    code : str
        The end of `type`, such as "not-found".
    title : str
        The problem in two or three words.
    detail : str
        What is wrong and what to do.
    errors : sequence of mapping
        One per invalid member: `attr`, `detail` and `code`.
    retry_after : float or None
        Seconds after which the server would accept the call again.
    """

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: float | None = None) -> None:
        self.status = status
        self.type = str(problem.get("type", ""))
        self.code = self.type.rpartition("#")[2]
        self.title = str(problem.get("title", ""))
        self.detail = str(problem.get("detail", ""))
        self.errors: Sequence[Mapping[str, Any]] = list(problem.get("errors", []))
        self.retry_after = retry_after
        super().__init__(f"{status} {self.title}: {self.detail}")


def shift_row_number(text: str, start: int) -> str:
    """Replace the row number at the start of a text by the number among all rows, which is larger by `start`."""
    return re.sub(r"\Arows\[(\d+)\]", lambda place: f"rows[{start + int(place[1])}]", text)


class BadRequestError(ApiError):
    """Status 400: the call is malformed."""


class AuthenticationError(ApiError):
    """Status 401: the token is missing, unknown, revoked or expired."""


class NotAllowedError(ApiError):
    """Status 403: the account or the token may not do this."""


class NotFoundError(ApiError):
    """Status 404: the object does not exist, or is not yours."""


class StateConflictError(ApiError):
    """Status 409: the state of the object does not allow this."""


class RetiredError(ApiError):
    """Status 410: the model is retired."""


class TooLargeError(ApiError):
    """Status 413: the body exceeds a limit of the server."""


class InvalidValueError(ApiError):
    """Status 422: values of the call are invalid. `errors` names them."""


class RateLimitError(ApiError):
    """Status 429: too many calls. Try again after `retry_after` seconds."""


class ServerError(ApiError):
    """Status 5xx: the server failed or is busy."""


class RunFailedError(ClientError):
    """A run or a batch prediction failed, or was cancelled without a result."""


class WaitTimeoutError(ClientError, TimeoutError):
    """`wait` reached its timeout. The job continues on the server."""


BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    403: NotAllowedError,
    404: NotFoundError,
    409: StateConflictError,
    410: RetiredError,
    413: TooLargeError,
    422: InvalidValueError,
    429: RateLimitError,
}


def error_of(status: int, problem: Mapping[str, Any], retry_after: float | None = None) -> ApiError:
    """Return the exception for a refused call."""
    default: type[ApiError] = ServerError if status >= 500 else ApiError
    return BY_STATUS.get(status, default)(status, problem, retry_after)


def shift_row_numbers(error: ApiError, start: int) -> ApiError:
    """Return a refusal whose row numbers count the `start` rows of earlier calls, too."""
    if not start:
        return error
    errors = [
        dict(member) | {"detail": shift_row_number(str(member.get("detail", "")), start)} for member in error.errors
    ]
    detail = shift_row_number(error.detail, start)
    problem = {"type": error.type, "title": error.title, "detail": detail, "errors": errors}
    shifted = type(error)(error.status, problem, error.retry_after)
    shifted.add_note(f"The first {start:,} rows were answered by earlier calls.")
    return shifted
