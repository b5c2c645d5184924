"""Wait for background jobs, and read batch predictions."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self, TypeVar

from octweb.client.errors import NoConnectionError, RunFailedError, ServerError, WaitTimeoutError
from octweb.client.resource import Resource

FINISHED = {"succeeded", "failed", "cancelled"}
FIRST_POLL_SECONDS = 0.2
LONGEST_POLL_SECONDS = 2.0
LONGEST_OUTAGE_SECONDS = 300.0  # a server that is updated is back by then
Answer = TypeVar("Answer")


class RemoteJob(Resource):
    """A job that the server runs in the background. Base class of runs and batch predictions."""

    @property
    def status(self) -> str:
        """Either "queued", "running", "succeeded", "failed" or "cancelled"."""
        return str(self.data["status"])

    @property
    def is_finished(self) -> bool:
        """Whether the job has ended, successfully or not."""
        return self.status in FINISHED

    @property
    def error(self) -> str:
        """The reason why the job failed, otherwise ""."""
        return str(self.data["error"] or "")

    def cancel(self) -> Self:
        """Cancel the job, and return it. A run keeps its best tree so far."""
        self.data = self._connection.post(f"{self.path}cancel/")
        return self

    def delete(self) -> None:
        """Delete the job once it has ended."""
        self._connection.delete(self.path)

    def wait(self, timeout: float | None = None) -> Self:
        """Wait until the job ends, and return it. If the server restarts, the client asks again for up to five minutes.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait at most; by default without limit.

        Raises
        ------
        RunFailedError
            If the job failed; the message comes from the server.
        WaitTimeoutError
            If it has not ended by then. It continues, and `wait` may be called again.
        NoConnectionError
            If no answer came for five minutes.
        """
        outage = Outage()
        for pause in polls(timeout):
            if self.is_finished:
                break
            self._sleep(pause, timeout)
            outage.read(self.refresh)
        if self.status == "failed":
            raise RunFailedError(self.error or "The server does not say why.")
        return self

    def _sleep(self, pause: float | None, timeout: float | None) -> None:
        """Sleep until the next poll. Raises WaitTimeoutError if the timeout is over."""
        if pause is None:
            raise WaitTimeoutError(f"{self!r} has not ended after {timeout} seconds. It continues on the server.")
        time.sleep(pause)


class Outage:
    """Time since when the server is unavailable, for example because it restarts."""

    def __init__(self) -> None:
        self._since: float | None = None

    def read(self, read: Callable[[], Answer]) -> Answer | None:
        """Return what `read` returns, or None if the server is unavailable.

        Raises its error if the server has been unavailable for LONGEST_OUTAGE_SECONDS.
        """
        try:
            answer = read()
        except (NoConnectionError, ServerError):
            now = time.monotonic()
            self._since = now if self._since is None else self._since
            if now - self._since > LONGEST_OUTAGE_SECONDS:
                raise
            return None
        self._since = None
        return answer


def polls(timeout: float | None, clock: Callable[[], float] = time.monotonic) -> Iterator[float | None]:
    """Yield the seconds until the next poll, growing to LONGEST_POLL_SECONDS. Yield None once the timeout is over."""
    end = None if timeout is None else clock() + timeout
    pause = FIRST_POLL_SECONDS
    while True:
        left = pause if end is None else end - clock()
        yield min(pause, left) if left > 0 else None
        pause = min(LONGEST_POLL_SECONDS, pause * 1.5)


class RemoteBatch(RemoteJob):
    """A batch prediction: a file that a model predicts in the background.

    Examples
    --------
    >>> batch = model.predict_file("applications.csv").wait()  # doctest: +SKIP
    >>> batch.download("answers.csv")  # doctest: +SKIP
    """

    PATH = "predictions"

    @property
    def rows(self) -> int | None:
        """The number of rows of the file. None before the job has ended."""
        return None if self.data["rows"] is None else int(self.data["rows"])

    @property
    def labels(self) -> dict[str, int]:
        """Rows by predicted class."""
        return dict(self.data["labels"])

    @property
    def notes(self) -> list[str]:
        """Notes on how unusual values, such as unseen categories, were treated."""
        return list(self.data["notes"])

    @property
    def problems(self) -> list[str]:
        """Messages about cells that could not be read, with row and column."""
        return list(self.data["problems"])

    def __repr__(self) -> str:
        return f"<RemoteBatch of '{self.data['source_name']}', {self.status}, {self.id}>"

    def content(self) -> bytes:
        """Return the content of the result file."""
        return self._connection.download(f"{self.path}result/")

    def download(self, path: str | Path) -> Path:
        """Save the result file, and return the path."""
        self._connection.download(f"{self.path}result/", path)
        return Path(path)

    def to_frame(self) -> Any:
        """Return the answers as a pandas data frame."""
        import pandas

        readers = {"csv": pandas.read_csv, "parquet": pandas.read_parquet, "arrow": pandas.read_feather}
        return readers[self.data["format"]](io.BytesIO(self.content()))
