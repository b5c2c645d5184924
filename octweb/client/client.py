"""Define `Client`, the entry point to an octweb server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from octweb.client.connection import API, Connection
from octweb.client.datasets import Datasets, RemoteDataset
from octweb.client.decisions import Decisions
from octweb.client.jobs import RemoteBatch
from octweb.client.models import Models, RemoteModel
from octweb.client.predictions import AnsweredRows
from octweb.client.resource import is_id
from octweb.client.runs import RemoteRun, Runs

if TYPE_CHECKING:
    import httpx

URL_VARIABLE = "OCTWEB_URL"
TOKEN_VARIABLE = "OCTWEB_TOKEN"  # noqa: S105
RUN_MEMBERS = ("group", "time", "weight", "warm_start")  # these members of a run are not parameters of its method


class Client:
    """A client of an octweb server.

    It needs the package httpx (`pip install 'octweb[client]'`) and a token, which `octweb token USERNAME` or the page
    *API* of the server makes.

    Parameters
    ----------
    url : str, optional
        Address of the server; by default the environment variable `OCTWEB_URL`.
    token : str, optional
        The token; by default the environment variable `OCTWEB_TOKEN`.
    timeout : float
        Seconds until a call without any answer fails.
    retries : int
        Further attempts of a call that got no answer or came at a busy moment. The client waits as long as `Retry-After`
        says, at most a minute. A call that may have been executed is repeated only if repeating it is safe.
    transport : httpx.BaseTransport, optional
        Replaces the network, for tests.

    Attributes
    ----------
    datasets, runs, models, decisions
        The objects of the server.

    Raises
    ------
    ImportError
        If httpx is not installed.
    ValueError
        If address or token are missing.

    Examples
    --------
    >>> import octweb
    >>> client = octweb.Client("https://trees.example.org", token="...")  # doctest: +SKIP
    >>> model = client.train("loans.csv", target="default", method="exact", depth=3).wait().model  # doctest: +SKIP
    >>> model.predict([{"income": 1200, "age": 41}])[0].label  # doctest: +SKIP
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 4,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        url = (url or os.environ.get(URL_VARIABLE, "")).strip().rstrip("/").removesuffix(API.rstrip("/"))
        token = (token or os.environ.get(TOKEN_VARIABLE, "")).strip()
        if not url.startswith(("http://", "https://")) or not urlsplit(url).hostname:
            raise ValueError(f"'{url}' is not the address of a server. Pass url='https://…', or set {URL_VARIABLE}.")
        if not token:
            raise ValueError(
                f"There is no token. Pass token=…, or set {TOKEN_VARIABLE}. The page API of {url} makes one."
            )
        if not token.isascii() or not token.isprintable():
            raise ValueError("The token has characters that no token has. Copy it again.")
        self._connection = Connection(url, token, timeout=timeout, retries=retries, transport=transport)
        self.datasets = Datasets(self._connection)
        self.runs = Runs(self._connection)
        self.models = Models(self._connection)
        self.decisions = Decisions(self._connection)

    def __repr__(self) -> str:
        return f"<octweb.Client of {self._connection.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the server."""
        self._connection.close()

    def methods(self) -> list[dict[str, Any]]:
        """Return all training methods with the declarations of their parameters."""
        return list(self._connection.get("methods/"))

    def train(
        self,
        dataset: Any,
        *,
        target: str | None = None,
        method: str = "exact",
        name: str = "",
        test_share: float = 0.0,
        folds: int = 0,
        **parameters: Any,
    ) -> RemoteRun:
        """Queue a training run and return it.

        Parameters
        ----------
        dataset : RemoteDataset, str, path, binary stream, bytes or data frame
            A data set or its id. Others are uploaded first.
        target : str, optional
            The column to predict; by default the target of the data set. Another target changes the data set.
        method : str
            The id of a method.
        name : str
            The name of the run; later trees of the same name are versions of one model.
        test_share : float
            Share of the rows to hold out.
        folds : int
            Folds of a cross-validation.
        **parameters
            Parameters of the method, such as `depth`, `leaf_penalty`, `time_limit` (`client.methods()` declares them), and
            `group`, `time` and `weight` (columns) and `warm_start` (a model).

        Returns
        -------
        RemoteRun
            `run.progress()` yields incumbent, bound and gap; `run.wait().model` is the trained model.

        Raises
        ------
        InvalidValueError
            If a parameter is unknown or out of range, or the data do not suit the method.
        """
        data = self._dataset(dataset, target or "")
        if target is not None and data.target != target:
            data.confirm(target=target)
        members = {member: parameters.pop(member) for member in RUN_MEMBERS if member in parameters}
        if "warm_start" in members:
            members["warm_start"] = getattr(members["warm_start"], "id", members["warm_start"])
        options = {"name": name, "test_share": test_share, "folds": folds}
        members |= {member: value for member, value in options.items() if value}
        return self.runs.create(dataset=data.id, method=method, parameters=parameters, **members)

    def predict(self, model: str, rows: Any, **options: Any) -> AnsweredRows:
        """Predict rows with the model of this id. Options are those of `RemoteModel.predict`.

        Unlike `client.models.get(model).predict(rows)`, it needs one call, and a prediction token is sufficient.
        """
        return self._model(model).predict(rows, **options)

    def predict_file(self, model: str, file: Any, **options: Any) -> RemoteBatch:
        """Predict a file in the background with the model of this id; options as in `RemoteModel.predict_file`."""
        return self._model(model).predict_file(file, **options)

    def _model(self, model: str) -> RemoteModel:
        """Return the model with this id without reading it."""
        if not is_id(str(model)):
            raise ValueError(f"'{model}' is not the id of a model. For a name, use client.models.get(name).")
        return RemoteModel(self._connection, {"id": str(model)})

    def _dataset(self, source: Any, target: str) -> RemoteDataset:
        """Return the data set passed to `train`. Upload it first unless it is on the server."""
        if isinstance(source, RemoteDataset):
            return source
        if isinstance(source, str) and is_id(source):
            return self.datasets.get(source)
        return self.datasets.upload(source, target=target)
