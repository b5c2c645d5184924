"""Follow training runs on the server, and fetch their models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from octweb.client.bodies import json_value
from octweb.client.connection import Connection, new_key
from octweb.client.errors import RunFailedError
from octweb.client.jobs import FINISHED, Outage, RemoteJob, polls
from octweb.client.models import RemoteModel


@dataclass(frozen=True, kw_only=True)
class SearchProgress:
    """The state of a search at one moment, as `RemoteRun.progress` yields it.

    Attributes
    ----------
    seconds : float
        Since the search began.
    phase : str
        Current activity of the search.
    incumbent, bound, gap : float or None
        Objective of the best tree so far, its upper bound, and the relative gap between them; None if not known.
    leaves : int or None
        Leaves of the best tree so far.
    data : mapping
        All members of the record.
    """

    seconds: float
    phase: str
    incumbent: float | None
    bound: float | None
    gap: float | None
    leaves: int | None
    data: Mapping[str, Any]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> SearchProgress:
        """Create a SearchProgress from a progress record of the API."""
        known = {name: record.get(name) for name in ("incumbent", "bound", "gap", "leaves")}
        return cls(seconds=float(record.get("t", 0.0)), phase=str(record.get("phase", "")), data=record, **known)


class RemoteRun(RemoteJob):
    """A training run on the server.

    Examples
    --------
    >>> run = client.train(dataset, method="exact", depth=3)  # doctest: +SKIP
    >>> for step in run.progress():  # doctest: +SKIP
    ...     print(f"{step.seconds:.0f} s: {step.incumbent} of at most {step.bound}")
    >>> model = run.wait().model  # doctest: +SKIP
    """

    PATH = "runs"

    @property
    def name(self) -> str:
        """The name of the run."""
        return str(self.data["name"])

    @property
    def method(self) -> str:
        """The id of the method."""
        return str(self.data["method"])

    @property
    def last(self) -> SearchProgress | None:
        """The newest progress record at the last `refresh`. None if there was none."""
        record = self.data["progress"]
        return SearchProgress.of(record) if record else None

    @property
    def model(self) -> RemoteModel:
        """The trained model, read from the server.

        Raises RunFailedError if there is none, or none yet.
        """
        if self.data["model"] is None:
            raise RunFailedError(f"{self!r} has no model. {self.error}".strip())
        return RemoteModel(self._connection, self._connection.get(f"models/{self.data['model']}/"))

    def __repr__(self) -> str:
        return f"<RemoteRun '{self.name}', {self.status}, {self.id}>"

    def progress(self, timeout: float | None = None) -> Iterator[SearchProgress]:
        """Yield the progress records from the beginning until the run has ended.

        If the server restarts meanwhile, the client retries for five minutes. Raises WaitTimeoutError after `timeout` seconds.
        """
        since = 0
        attempt = None
        outage = Outage()
        for pause in polls(timeout):
            page = outage.read(partial(self._connection.get, f"{self.path}progress/", since=since))
            if page is not None:
                is_restarted = attempt not in (None, page["attempt"])  # a worker has started the run again
                attempt = page["attempt"]
                if is_restarted:
                    since = 0
                    continue
                since = page["next"]
                yield from (SearchProgress.of(record) for record in page["records"])
                if page["records"]:
                    continue
                if page["status"] in FINISHED:
                    self.refresh()
                    return
            self._sleep(pause, timeout)

    def again(self, dataset: Any = None) -> RemoteRun:
        """Queue a run with the same settings, on the same or another data set, and return it."""
        body = {} if dataset is None else {"dataset": getattr(dataset, "id", dataset)}
        return RemoteRun(self._connection, self._connection.post(f"{self.path}again/", body, key=new_key()))


class Runs:
    """The runs of the caller: `client.runs`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(self, **members: Any) -> RemoteRun:
        """Queue a run with the members of the API: `dataset`, `method`, `parameters` and more."""
        return RemoteRun(self._connection, self._connection.post("runs/", json_value(members), key=new_key()))

    def get(self, id: str) -> RemoteRun:
        """Return the run with this id."""
        return RemoteRun(self._connection, self._connection.get(f"runs/{id}/"))

    def list(self, **filters: Any) -> Iterator[RemoteRun]:
        """Yield the caller's runs, newest first.

        Filters are `status`, `dataset`, `search`, `since`, `until` and `ordering`.
        """
        return (RemoteRun(self._connection, record) for record in self._connection.pages("runs/", **filters))

    def __iter__(self) -> Iterator[RemoteRun]:
        return self.list()
