"""Read recorded decisions, and record outcomes, overrides and objections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from octweb.client.bodies import rows_of
from octweb.client.connection import Connection, new_key


class Decisions:
    """Decisions that the server has recorded: `client.decisions`.

    Examples
    --------
    >>> answers = model.predict(rows)  # doctest: +SKIP
    >>> client.decisions.outcome(answers[0].decision, "paid", known_at="2026-11-01")  # doctest: +SKIP
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, decision: str) -> dict[str, Any]:
        """Return a decision with its values, path and later records. The server records this access."""
        return dict(self._connection.get(f"decisions/{decision}/"))

    def outcome(
        self, decision: str, value: str, *, known_at: str | None = None, source: str | None = None
    ) -> dict[str, Any]:
        """Record the class that came true. The same outcome again adds nothing, and a different one corrects the record."""
        return self._add(decision, "outcome", value=value, known_at=known_at, source=source)

    def override(self, decision: str, label: str, reason: str) -> dict[str, Any]:
        """Record the class that a person chose instead, and the reason."""
        return self._add(decision, "override", label=label, reason=reason)

    def objection(self, decision: str, reason: str | None = None, **members: str) -> dict[str, Any]:
        """Record an objection, or the answer to it.

        `members` are `received`, `text_ref`, `state` and `answer`.
        """
        return self._add(decision, "objection", reason=reason, **members)

    def _add(self, decision: str, kind: str, **members: str | None) -> dict[str, Any]:
        body = {name: value for name, value in members.items() if value is not None}
        return dict(self._connection.post(f"decisions/{decision}/{kind}/", body, key=new_key()))

    def outcomes(self, rows: Any) -> dict[str, int]:
        """Record many outcomes, all or none.

        Parameters
        ----------
        rows : sequence of mapping, data frame, or bytes of a CSV file
            Each row with `decision` and `value`, and optionally `known_at` and `source`; a CSV file has `outcome` for `value`.

        Returns
        -------
        dict
            `added` and `unchanged`: numbers of records.
        """
        return self._add_many("outcomes/", rows)

    def overrides(self, rows: Sequence[Mapping[str, Any]] | bytes) -> dict[str, int]:
        """Record many overrides, all or none. Each row has `decision`, `label` and `reason`."""
        return self._add_many("overrides/", rows)

    def _add_many(self, path: str, rows: Any) -> dict[str, int]:
        if isinstance(rows, bytes):
            return dict(self._connection.post(path, content=(rows, "text/csv")))
        records = [{name: value for name, value in row.items() if value is not None} for row in rows_of(rows)]
        return dict(self._connection.post(path, {"rows": records}))
