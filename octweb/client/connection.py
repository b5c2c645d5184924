"""Send API calls with token and retries, and read pages of lists."""

from __future__ import annotations

import email.utils
import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from octweb.client.errors import ApiError, ClientError, NoConnectionError, error_of
from trainer.version import VERSION

if TYPE_CHECKING:
    import httpx

API = "/api/v1/"
PAGE_SIZE = 200
FIRST_PAUSE_SECONDS = 0.25  # before the second attempt; each further pause is twice as long
LONGEST_PAUSE_SECONDS = 60.0  # a server that asks for more gets no further attempt
LONGEST_EXECUTION_SECONDS = 600.0  # the server treats an attempt as lost after this time
BUSY = {429, 503}  # refused before anything was done, so that any call may be repeated
GATEWAY = {502, 504}  # the server may have executed the call
REPEATABLE = {"GET", "HEAD", "PUT", "PATCH", "DELETE"}  # have the same effect if they are executed twice
MISSING_HTTPX = "octweb.Client needs the package httpx. Install it: pip install 'octweb[client]', or pip install httpx."

OpenFile = tuple[str, Callable[[], Any]]  # name of the file, and a function that opens its content


@dataclass(frozen=True, kw_only=True)
class ApiCall:
    """A call of the API.

    `form` and `file` make a multipart body. `key` is the Idempotency-Key. A call with a key may be repeated.
    """

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    content: tuple[bytes, str] | None = None  # a body of another type: bytes and media type
    form: Mapping[str, str] = field(default_factory=dict)
    file: OpenFile | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None

    @property
    def is_repeatable(self) -> bool:
        """Whether the call may be sent again even if the server has executed it."""
        return self.method in REPEATABLE or self.key is not None


def new_key() -> str:
    """Return a new Idempotency-Key."""
    return str(uuid.uuid4())


def load_httpx() -> Any:
    """Return the module httpx. Raise ImportError with installation advice if it is missing."""
    try:
        import httpx
    except ImportError as error:
        raise ImportError(MISSING_HTTPX) from error
    return httpx


class Connection:
    """A connection to one server.

    Parameters
    ----------
    url : str
        Address of the server.
    token : str
        An API token.
    timeout : float
        Seconds until a call without any answer fails.
    retries : int
        Further attempts of a call that got no answer, or that the server was too busy for.
    transport : httpx.BaseTransport, optional
        Replaces the network, for tests.
    """

    def __init__(
        self, url: str, token: str, *, timeout: float, retries: int, transport: httpx.BaseTransport | None = None
    ) -> None:
        library = load_httpx()
        self.url = url.rstrip("/")
        self.retries = retries
        self._errors = library.TransportError
        self._not_sent = (library.ConnectError, library.ConnectTimeout, library.PoolTimeout)
        self._http: httpx.Client = library.Client(
            headers={"Authorization": f"Bearer {token}", "User-Agent": f"octweb-client/{VERSION}"},
            timeout=timeout,
            transport=transport,
        )

    def close(self) -> None:
        """Close the connections to the server."""
        self._http.close()

    def get(self, path: str, **query: Any) -> Any:
        """Return the JSON of a GET."""
        return _json(self.send(ApiCall(method="GET", path=path, query=query)))

    def post(self, path: str, body: Any = None, **options: Any) -> Any:
        """Return the JSON of a POST; `options` as in `ApiCall`."""
        return _json(self.send(ApiCall(method="POST", path=path, body=body, **options)))

    def patch(self, path: str, body: Any) -> Any:
        """Return the JSON of a PATCH."""
        return _json(self.send(ApiCall(method="PATCH", path=path, body=body)))

    def delete(self, path: str) -> None:
        """Send a DELETE."""
        self.send(ApiCall(method="DELETE", path=path))

    def download(self, path: str, target: str | PathLike[str] | None = None, **query: Any) -> bytes:
        """Return the content of a file of the server, and save it if `target` is given."""
        content = self.send(ApiCall(method="GET", path=path, query=query)).content
        if target is not None:
            Path(target).write_bytes(content)
        return content

    def pages(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Yield the rows of a list, page by page."""
        page = self.get(path, **{"page_size": PAGE_SIZE} | query)
        while True:
            yield from page["results"]
            if page["next"] is None:
                return
            # only the path, because a proxy may have changed scheme or host
            following = urlsplit(page["next"])
            page = self.get(f"{self._below(following.path)}?{following.query}")

    def _below(self, path: str) -> str:
        """Return a path without the path prefix of the server's address."""
        return path.removeprefix(urlsplit(self.url).path)

    def address(self, path: str) -> str:
        """Return the URL of a path. A path without a leading slash is relative to the API."""
        return self.url + urljoin(API, path)

    def send(self, call: ApiCall) -> httpx.Response:
        """Send a call, repeat it if that is safe, and return the answer.

        Raises
        ------
        ApiError
            If the server refused the call.
        NoConnectionError
            If no answer came.
        """
        is_lost = False  # an earlier attempt may have been executed
        attempt = 0
        end = time.monotonic() + LONGEST_EXECUTION_SECONDS
        while True:
            is_last = attempt >= self.retries
            try:
                response = self._attempt(call)
            except self._errors as error:
                is_sent = not isinstance(error, self._not_sent)
                if is_last or (is_sent and not call.is_repeatable):
                    raise NoConnectionError(f"No answer from {self.address(call.path)}: {error!r}") from error
                is_lost = is_lost or is_sent
                pause = _pause(attempt)
            else:
                if response.is_success:
                    return response
                if is_lost and call.method == "DELETE" and response.status_code == 404:
                    return response  # an earlier attempt has deleted it
                refusal = _refusal(response)
                is_lost = is_lost or refusal.status in GATEWAY
                is_safe = refusal.status in BUSY or (refusal.status in GATEWAY and call.is_repeatable)
                pause = _pause(attempt) if refusal.retry_after is None else refusal.retry_after
                if is_lost and refusal.status == 409 and refusal.retry_after is not None and time.monotonic() < end:
                    # The server still executes the first attempt of this creating call, for example it reads a large file.
                    time.sleep(pause)
                    continue
                if is_last or not is_safe or pause > LONGEST_PAUSE_SECONDS:
                    raise refusal
            time.sleep(pause)
            attempt += 1

    def _attempt(self, call: ApiCall) -> httpx.Response:
        headers = dict(call.headers)
        if call.key is not None:
            headers["Idempotency-Key"] = call.key
        body: dict[str, Any] = {}
        if call.body is not None:
            body["json"] = call.body
        if call.content is not None:
            body["content"], headers["Content-Type"] = call.content
        if call.file is None:
            return self._http.request(
                call.method, self.address(call.path), params=call.query or None, headers=headers, **body
            )
        name, open_content = call.file
        with open_content() as content:
            files = {"file": (name, content)}
            return self._http.request(
                call.method, self.address(call.path), data=dict(call.form), files=files, headers=headers
            )


def _pause(attempt: int) -> float:
    """Return the seconds until the next attempt, with jitter so that clients do not retry at once."""
    return FIRST_PAUSE_SECONDS * 2**attempt * random.uniform(0.75, 1.25)


def _json(response: httpx.Response) -> Any:
    """Return the JSON of an answer. Raises ClientError for another answer, such as the page of a proxy."""
    try:
        return response.json()
    except ValueError as error:
        raise ClientError(
            f"The answer of {response.url} is not JSON. Is this the address of an octweb server?"
        ) from error


def _refusal(response: httpx.Response) -> ApiError:
    """Return the exception of a refused call."""
    if response.is_redirect:
        detail = f"The server moved to {response.headers['Location']}. Pass its new address as url."
        return error_of(response.status_code, {"title": response.reason_phrase, "detail": detail})
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {"title": response.reason_phrase, "detail": response.text[:300]}
    return error_of(response.status_code, problem, _seconds(response.headers.get("Retry-After")))


def _seconds(retry_after: str | None) -> float | None:
    """Parse a Retry-After header, a number or a date, and return seconds. None if it cannot be parsed."""
    if retry_after is None:
        return None
    if retry_after.strip().isdigit():
        return float(retry_after)
    try:
        moment = email.utils.parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - time.time())
