"""Read, upload and change data sets on the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from octweb.client.bodies import form_of, open_file
from octweb.client.connection import Connection, new_key
from octweb.client.resource import Resource

READ_OPTIONS = (
    "delimiter", "encoding", "header", "sheet", "decimal", "thousands", "missing_words", "kinds", "ignore", "special", "merge",
    "unknown", "skip_top", "skip_bottom",
)  # fmt: skip


class RemoteDataset(Resource):
    """A data set on the server: a table, its columns and its target.

    Examples
    --------
    >>> dataset = client.datasets.upload("loans.csv", target="default")  # doctest: +SKIP
    >>> for finding in dataset.inspect():  # doctest: +SKIP
    ...     print(finding["severity"], finding["sentence"])
    >>> dataset.confirm(ignore=["customer"], kinds={"zip": "categorical"})  # doctest: +SKIP
    """

    PATH = "datasets"

    @property
    def name(self) -> str:
        """The name of the data set."""
        return str(self.data["name"])

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.data["rows"])

    @property
    def target(self) -> str:
        """The column that trees predict, or "" if none was chosen."""
        return str(self.data["target"] or "")

    @property
    def columns(self) -> list[dict[str, Any]]:
        """The columns: `name`, `kind`, `role`, `missing` (empty cells), `distinct` and more."""
        return list(self.data["columns"])

    def __repr__(self) -> str:
        return f"<RemoteDataset '{self.name}', {self.rows:,} rows, target '{self.target}', {self.id}>"

    def preview(self, rows: int = 20) -> list[dict[str, str | None]]:
        """Return the first rows as texts, as the server parsed them. An empty cell is None."""
        page = self._connection.get(f"{self.path}rows/", limit=rows)
        return [dict(zip(page["columns"], row, strict=True)) for row in page["rows"]]

    def inspect(self) -> list[dict[str, Any]]:
        """Return the intake report: possible problems of the table, the worst first.

        Returns
        -------
        list of dict
            Each with `kind`, `column`, `severity`, `figure`, `sentence`, `mend` and `if_nothing`.
        """
        return list(self._connection.get(f"{self.path}inspection/"))

    def confirm(
        self,
        *,
        target: str | None = None,
        kinds: Mapping[str, str] | None = None,
        ignore: Sequence[str] = (),
        mend: Sequence[Mapping[str, Any]] = (),
        columns: Sequence[Mapping[str, Any]] = (),
        name: str | None = None,
    ) -> RemoteDataset:
        """Change what the columns mean, and return the data set.

        Parameters
        ----------
        target : str, optional
            The column that trees predict.
        kinds : mapping from str to str, optional
            Column to "numeric", "categorical", "binary" or "ranks".
        ignore : sequence of str
            Columns that no tree may ask.
        mend : sequence of findings
            Findings of `inspect` whose remedy to apply. A finding without a remedy changes nothing. Neither does one about a
            choice that the server has made itself, such as to leave out an identifier; change that with `columns`.
        columns : sequence of mapping
            Further changes as the API takes them: `name`, and `missing_policy`, `unit`, `meanings` and more.
        name : str, optional
            A new name of the data set.

        Raises
        ------
        ValueError
            If the remedy of a finding needs another file.
        InvalidValueError
            If a column does not exist, or its values do not fit its kind.
        """
        changes = [change for finding in mend for change in self._remedies(finding)]
        changes += [{"name": column, "kind": kind} for column, kind in (kinds or {}).items()]
        changes += [{"name": column, "role": "ignored"} for column in ignore]
        body: dict[str, Any] = {"columns": _merge_by_name([*changes, *columns])} if changes or columns else {}
        body |= {member: value for member, value in (("target", target), ("name", name)) if value is not None}
        self.data = self._connection.patch(self.path, body)
        return self

    def _remedies(self, finding: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the changes of columns that are the remedy of a finding. Raises ValueError if it needs another file."""
        mend = finding["mend"]
        if not mend or mend.get("role") == "feature" or mend.get("kind") == "text":  # the last two undo a choice
            return []
        change = {member: mend[member] for member in ("role", "kind") if member in mend}
        if "missing" in mend:
            change["missing_words"] = list(mend["missing"])
        if "merge" in mend:
            change["merge"] = True
        is_of_upload = str(mend.get("kind", "")).startswith("date:")  # stored rows keep their days as they were read
        if "column" not in mend or not change or is_of_upload:
            raise ValueError(
                f"'{finding['kind']}' cannot be mended by the client: {finding['sentence']} Change the file and upload it again."
            )
        made = {column["name"] for column in self.columns}.intersection(mend.get("columns", ()))  # parts of a date
        return [{"name": name, **change} for name in sorted(made) or [mend["column"]]]

    def new_version(self, file: Any, *, as_it_is: bool = False) -> RemoteDataset:
        """Upload the next version: a file with the same columns, read in the same way.

        Parameters
        ----------
        file : path, binary stream, bytes or data frame
            The rows.
        as_it_is : bool
            Store it even if units or spellings seem to have changed.
        """
        form = {"as_it_is": "true" if as_it_is else "false"}
        path = f"{self.path}versions/"
        return RemoteDataset(
            self._connection, self._connection.post(path, form=form, file=open_file(file), key=new_key())
        )

    def preview_version(self, file: Any) -> dict[str, Any]:
        """Compare a file with this version in a dry run. Nothing is stored.

        Parameters
        ----------
        file : path, binary stream, bytes or data frame
            The rows, as for `new_version`.

        Returns
        -------
        dict
            `rows`, `differences` from this version, and `problems`, for which `new_version` needs `as_it_is`.
        """
        answer = self._connection.post(f"{self.path}versions/", form={"dry_run": "true"}, file=open_file(file))
        return dict(answer)

    def versions(self) -> list[RemoteDataset]:
        """Return this version and the earlier ones, newest first."""
        return [RemoteDataset(self._connection, record) for record in self._connection.get(f"{self.path}versions/")]

    def contract(self) -> dict[str, Any]:
        """Return the table contract: what each column and the target mean."""
        return dict(self._connection.get(f"{self.path}contract/"))

    def download(self, path: str | Path) -> Path:
        """Save the parsed rows as a CSV file, and return the path."""
        self._connection.download(f"{self.path}download/", path, **{"as": "read"})
        return Path(path)

    def delete(self) -> None:
        """Delete the data set. It can be restored on the page of deleted objects."""
        self._connection.delete(self.path)


def _merge_by_name(changes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Merge the changes of each column into one. If they contradict, the last one wins."""
    merged: dict[str, dict[str, Any]] = {}
    for change in changes:
        merged.setdefault(change["name"], {}).update(change)
    return list(merged.values())


class Datasets:
    """The data sets of the caller: `client.datasets`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def upload(self, file: Any, *, target: str = "", name: str = "", team: str = "", **options: Any) -> RemoteDataset:
        """Upload a table and return the data set.

        Parameters
        ----------
        file : path, binary stream, bytes or data frame
            CSV (also compressed), Excel, Parquet or Arrow. A data frame is sent as CSV.
        target : str
            The column to predict; it can be chosen later (`RemoteDataset.confirm`).
        name : str
            A name; by default that of the file.
        team : str
            The id of the team that gets the data set. The caller must be its owner or editor.
        **options
            How to read the file, as in the API: `delimiter`, `encoding`, `header`, `sheet`, `decimal`, `thousands`,
            `missing_words`, `kinds`, `ignore`, `special`, `merge`, `unknown`, `skip_top`, `skip_bottom`. Lists and dicts
            are sent as JSON. Others raise TypeError.

        Raises
        ------
        InvalidValueError
            If the file cannot be read; the message names the line.
        TooLargeError
            If it exceeds the limit of the server.
        """
        form = form_of(options, READ_OPTIONS)
        form |= {member: value for member, value in (("target", target), ("name", name), ("team", team)) if value}
        record = self._connection.post("datasets/", form=form, file=open_file(file), key=new_key())
        return RemoteDataset(self._connection, record)

    def get(self, id: str) -> RemoteDataset:
        """Return the data set with this id."""
        return RemoteDataset(self._connection, self._connection.get(f"datasets/{id}/"))

    def list(self, **filters: Any) -> Iterator[RemoteDataset]:
        """Yield the caller's data sets, newest first.

        Filters are `name`, `search`, `since`, `until` and `ordering`.
        """
        return (RemoteDataset(self._connection, record) for record in self._connection.pages("datasets/", **filters))

    def __iter__(self) -> Iterator[RemoteDataset]:
        return self.list()
