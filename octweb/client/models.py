"""Read, review, serve and call models on the server."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from octweb.client.bodies import batches, form_of, open_file, rows_of
from octweb.client.connection import Connection, new_key
from octweb.client.errors import ApiError, ClientError, shift_row_number, shift_row_numbers
from octweb.client.jobs import RemoteBatch
from octweb.client.predictions import AnsweredRows
from octweb.client.resource import Resource, is_id

if TYPE_CHECKING:
    from trainer.sklearn_api.estimators import TreeClassifier

ROWS_PER_CALL = 5_000
FILE_OPTIONS = ("format", "keep_columns", "explain", "change", "cost", "least", "sheet", "header")
SUBJECT_HEADER = "Octweb-Subject"
DRY_RUN_HEADER = "Octweb-Dry-Run"


class RemoteModel(Resource):
    """A model on the server: a tree, and what is proved about it.

    Examples
    --------
    >>> model = client.models.get("loan-risk")  # doctest: +SKIP
    >>> answers = model.predict([{"income": 1200, "age": 41}])  # doctest: +SKIP
    >>> answers[0].label, answers[0].probabilities, answers.notes  # doctest: +SKIP
    """

    PATH = "models"

    @property
    def name(self) -> str:
        """The name under which the model's versions are served."""
        return str(self.data["name"])

    @property
    def version(self) -> int:
        """The number of this version."""
        return int(self.data["version"])

    @property
    def title(self) -> str:
        """The title."""
        return str(self.data["title"])

    @property
    def state(self) -> str:
        """Either "draft", "in_review", "approved", "rejected" or "retired"."""
        return str(self.data["state"])

    @property
    def is_served(self) -> bool:
        """Whether programs can call the model by its name."""
        return self.data["served_since"] is not None

    @property
    def status(self) -> str:
        """How the training ended: "optimal", "time_limit", "heuristic" and so on."""
        return str(self.data["status"])

    @property
    def is_proved_optimal(self) -> bool:
        """Whether it is proved that no tree of the search space is better."""
        return bool(self._detail("proved_optimal"))

    @property
    def objective(self) -> float | None:
        """The objective of the tree."""
        return self._number("objective")

    @property
    def bound(self) -> float | None:
        """The proved bound on the objective. None for heuristics."""
        return self._number("bound")

    @property
    def gap(self) -> float | None:
        """The relative gap between objective and bound. None for heuristics."""
        return self._number("gap")

    @property
    def train_accuracy(self) -> float | None:
        """The accuracy on the training rows."""
        return self._number("train_accuracy")

    @property
    def unseen_accuracy(self) -> float | None:
        """The accuracy on held-out rows. None if none were held out."""
        return self._number("unseen_accuracy")

    @property
    def target(self) -> str:
        """The predicted column."""
        return str(self._detail("target"))

    @property
    def classes(self) -> list[str]:
        """The classes."""
        return list(self._detail("classes"))

    @property
    def columns(self) -> list[dict[str, Any]]:
        """The columns that a row must have. `used` says whether the tree tests the column."""
        return list(self._detail("columns"))

    @property
    def tree(self) -> list[dict[str, Any]]:
        """The nodes of the tree, as in the model file."""
        return list(self._detail("tree"))

    @property
    def certificate(self) -> dict[str, Any]:
        """The certificate: what is claimed about the tree, as in the model file."""
        return dict(self._detail("certificate"))

    @property
    def metrics(self) -> dict[str, Any]:
        """Metrics on the training set, held-out rows and folds, as in the model file."""
        return dict(self._detail("metrics"))

    def __repr__(self) -> str:
        return f"<RemoteModel '{self.name}' version {self.version}, {self.state}, {self.status}, {self.id}>"

    def _detail(self, member: str) -> Any:
        """Return a member that lists of models leave out. Read the model again if it is missing."""
        if member not in self.data:
            self.refresh()
        return self.data[member]

    def _number(self, member: str) -> float | None:
        value = self.data[member]
        return None if value is None else float(value)

    def rules(self) -> str:
        """Return the rules of the tree as text, like its page."""
        return self.export("rules").decode()

    def export(self, format: str, path: str | Path | None = None) -> bytes:
        """Return the model in another format, and save it if `path` is given.

        Parameters
        ----------
        format : str
            Such as "json", "html", "rules", "onnx", "pmml", "python", "sql", "dmn"; an unknown one is refused with the list.
        path : str or Path, optional
            Where to save it.
        """
        return self._connection.download(f"{self.path}download/", path, format=format)

    def download(self, path: str | Path | None = None) -> TreeClassifier:
        """Return the model as a fitted classifier, like `octweb.load`. Save its file if `path` is given."""
        from trainer import load

        content = self.export("json", path)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"{self.name}-{self.version}.json"
            file.write_bytes(content)
            return load(file)

    def predict(
        self,
        rows: Any,
        *,
        explain: bool = False,
        subject: str = "",
        dry_run: bool = False,
        batch_size: int = ROWS_PER_CALL,
    ) -> AnsweredRows:
        """Predict rows.

        Parameters
        ----------
        rows : dict, sequence of dict, or data frame
            Column to value. An empty cell is None, NaN, or an absent member.
        explain : bool
            Add the path of each row in words.
        subject : str
            Your reference to the person whom the decision concerns, to find and erase its record later.
        dry_run : bool
            Ask a retired model; for its owner and administrators.
        batch_size : int
            Rows per call. More rows are sent in several calls.

        Returns
        -------
        AnsweredRows
            A sequence of `Prediction` with `notes` on unusual values.

        Raises
        ------
        InvalidValueError
            If a row lacks a column, or a value does not fit; the message names row and column.
        RetiredError
            If the model is retired.
        """
        headers = {SUBJECT_HEADER: subject} if subject else {}
        headers |= {DRY_RUN_HEADER: "1"} if dry_run else {}
        query = {"explain": "true"} if explain else {}
        path = f"{self.path}predict/"
        pages = []
        for start, part in batches(rows_of(rows), batch_size):
            try:
                page = self._connection.post(path, {"rows": part}, query=query, headers=headers)
            except ApiError as error:
                raise shift_row_numbers(error, start) from None
            pages.append(page | {"notes": [shift_row_number(note, start) for note in page["notes"]]})
        return AnsweredRows(pages)

    def predict_frame(self, frame: Any, **options: Any) -> Any:
        """Predict a pandas data frame, and return the answers as a data frame with the same index.

        Options are those of `predict`.
        """
        return self.predict(frame, **options).to_frame(index=getattr(frame, "index", None))

    def predict_file(self, file: Any, **options: Any) -> RemoteBatch:
        """Predict a file in the background, and return the batch prediction.

        Parameters
        ----------
        file : path, binary stream, bytes or data frame
            Rows with the columns of the model.
        **options
            As in the API, others raise TypeError: `format` ("csv" or "parquet"), `keep_columns`, `explain`, `change`, `cost`, `least`, `sheet`, `header`.
        """
        form = form_of(options, FILE_OPTIONS)
        record = self._connection.post(
            "predictions/", form={"model": self.id, **form}, file=open_file(file), key=new_key()
        )
        return RemoteBatch(self._connection, record)

    def explain(
        self,
        rows: Any,
        *,
        change: Mapping[str, Any] | None = None,
        wanted: str | None = None,
        cost: Mapping[str, float] | None = None,
    ) -> list[dict[str, Any]]:
        """Explain the answers for up to 100 rows: the path, and the smallest change that leads to another answer.

        Parameters
        ----------
        rows : dict, sequence of dict, or data frame
            Rows as for `predict`.
        change : mapping, optional
            Column to "free", "up", "down", "whole", "fill" or "never", or to a list of categories.
        wanted : str, optional
            The class that the change leads to; by default any other one.
        cost : mapping, optional
            Column to what a change by 1 costs.

        Returns
        -------
        list of dict
            `label`, `leaf`, `probabilities`, `path`, and `flip`, or `no_flip` with the reason.
        """
        options = {"change": change, "wanted": wanted, "cost": cost}
        body = {"rows": rows_of(rows)} | {name: value for name, value in options.items() if value is not None}
        return list(self._connection.post(f"{self.path}explain/", body)["explanations"])

    def review(self) -> dict[str, Any]:
        """Return the review: `state`, `possible` steps, `history`, `purpose` and `checklist`."""
        return dict(self._connection.get(f"{self.path}review/"))

    def ask_for_approval(self, purpose: str = "") -> RemoteModel:
        """Request a review, and return the model."""
        return self._step("ask", purpose)

    def withdraw(self) -> RemoteModel:
        """Withdraw the model from review."""
        return self._step("withdraw")

    def approve(
        self, reason: str = "", *, publish: bool | None = None, recording: str = "", keep_days: int | None = None
    ) -> RemoteModel:
        """Approve the model, as a reviewer, and return it.

        `publish` says whether to serve it. By default, it is served unless a higher version is. With `recording="full"`
        the server records each answer, and erases the record after `keep_days` days.
        """
        more = {"publish": publish, "recording": recording or None, "keep_days": keep_days}
        return self._step("approve", reason, **{name: value for name, value in more.items() if value is not None})

    def ask_back(self, reason: str) -> RemoteModel:
        """Return the model to its owner with a question, as a reviewer."""
        return self._step("return", reason)

    def reject(self, reason: str) -> RemoteModel:
        """Reject the model, as a reviewer."""
        return self._step("reject", reason)

    def retire(self, reason: str = "") -> RemoteModel:
        """Retire the model. It then refuses calls."""
        return self._step("retire", reason)

    def _step(self, action: str, reason: str = "", **more: Any) -> RemoteModel:
        self.data = self._connection.post(f"{self.path}review/", {"action": action, "reason": reason, **more})
        return self

    def publish(self, name: str = "") -> RemoteModel:
        """Serve the approved model under its name, or under another one, and return it."""
        self.data = self._connection.post(f"{self.path}publish/", {"name": name})
        return self

    def stop_serving(self) -> RemoteModel:
        """Stop serving the model, and return it. It stays approved."""
        self._connection.delete(f"{self.path}publish/")
        return self.refresh()

    def share(self, username: str, level: str = "read", *, records: bool = False) -> None:
        """Share the model with another user, who may read it or use it, depending on `level`.

        With `records`, the user may also read the records of its decisions.
        """
        self._connection.post(f"{self.path}shares/", {"username": username, "level": level, "records": records})

    def life(self, days: int = 365) -> dict[str, Any]:
        """Return how the model is used: answers by day, watched shares, alarms and refused rows."""
        return self._connection.get(f"{self.path}life/", days=days)

    def decisions(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """Yield the recorded decisions of the model, newest first, without the values of their rows."""
        return self._connection.pages(f"{self.path}decisions/", **filters)


class Models:
    """Models that the caller may use (`client.models`): own, approved and shared ones."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, name: str, version: int | None = None) -> RemoteModel:
        """Return a model by its id, or by its name.

        Parameters
        ----------
        name : str
            The id of a model, or a name. A name means its served version.
        version : int, optional
            Another version of the name.

        Raises
        ------
        NotFoundError
            If no model has this id.
        ClientError
            If the name has no such version, or none of its versions is served.
        """
        if is_id(name):
            return RemoteModel(self._connection, self._connection.get(f"models/{uuid.UUID(name)}/"))
        models = list(self.list(name=name))
        if version is None:
            wanted = "served version"
            chosen = (model for model in models if model.is_served and model.refresh()["served"])
        else:
            wanted = f"version {version}"
            chosen = (model.refresh() for model in models if model.version == version)
        model = next(chosen, None)
        if model is None:
            known = ", ".join(str(model.version) for model in models) or "none"
            raise ClientError(f"The name '{name}' has no {wanted}. Versions that you may use: {known}.")
        return model

    def list(self, **filters: Any) -> Iterator[RemoteModel]:
        """Yield models, newest first.

        Filters are `name`, `state`, `status`, `method`, `dataset`, `search`, `since`, `until` and `ordering`.
        """
        return (RemoteModel(self._connection, record) for record in self._connection.pages("models/", **filters))

    def __iter__(self) -> Iterator[RemoteModel]:
        return self.list()

    def upload(self, file: Any, dataset: Any, *, title: str = "", classes: str = "", form: str = "") -> RemoteModel:
        """Import a tree of LightGBM, PMML or octweb as a draft, counted on the rows of a data set.

        Parameters
        ----------
        file : path, binary stream or bytes
            The tree.
        dataset : RemoteDataset or str
            The data set, or its id.
        title, classes, form : str
            Title of the model, names of the classes in the order of the file, and its form; all optional.
        """
        fields = {"dataset": str(getattr(dataset, "id", dataset)), "title": title, "classes": classes, "form": form}
        fields = {name: value for name, value in fields.items() if value}
        return RemoteModel(
            self._connection, self._connection.post("models/", form=fields, file=open_file(file), key=new_key())
        )
