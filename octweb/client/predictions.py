"""Hold the answers of a model to the rows of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The answer for one row.

    Attributes
    ----------
    label : str
        The predicted class.
    probabilities : mapping from str to float
        Share of each class among the training rows of the leaf.
    leaf : int
        The node of the leaf.
    path : sequence of str
        The path in words, if the call has `explain=True`.
    missing, unseen_missing, out_of_range : sequence of str
        Columns with an empty cell on the path; those of them without empty training cells there; and columns of the
        tree with a value outside the training range.
    decision : str or None
        Id of the record of this decision, where the server keeps records.
    """

    label: str
    probabilities: Mapping[str, float]
    leaf: int
    path: Sequence[str] = ()
    missing: Sequence[str] = ()
    unseen_missing: Sequence[str] = ()
    out_of_range: Sequence[str] = ()
    decision: str | None = None


MEMBERS = frozenset(Prediction.__dataclass_fields__)


class AnsweredRows(Sequence[Prediction]):
    """The answers for rows, in their order.

    Attributes
    ----------
    notes : list of str
        How unusual values were treated, such as categories that the training did not have.
    proposals : list of dict
        Readings under which a column would fit the training better.
    model, name, version : str, str, int
        The model that answered.
    certificate : dict
        Claim about its tree: `guarantee`, `status`, `gap`, `proved_optimal`.
    """

    def __init__(self, pages: Sequence[Mapping[str, Any]]) -> None:
        first = pages[0]
        self._answers = [
            Prediction(**{name: value for name, value in record.items() if name in MEMBERS})
            for page in pages
            for record in page["predictions"]
        ]
        self.notes: list[str] = list(dict.fromkeys(note for page in pages for note in page["notes"]))
        self.proposals: list[dict[str, Any]] = [proposal for page in pages for proposal in page.get("proposals", [])]
        self.model = str(first["model"])
        self.name = str(first["name"])
        self.version = int(first["version"])
        self.certificate: dict[str, Any] = dict(first["certificate"])

    @overload
    def __getitem__(self, index: int) -> Prediction: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Prediction]: ...
    def __getitem__(self, index: int | slice) -> Prediction | Sequence[Prediction]:
        return self._answers[index]

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self._answers)

    def __repr__(self) -> str:
        return f"<AnsweredRows of '{self.name}' version {self.version}, {len(self):,} rows, {len(self.notes)} notes>"

    @property
    def labels(self) -> list[str]:
        """The predicted class of each row."""
        return [answer.label for answer in self]

    @property
    def decisions(self) -> list[str | None]:
        """The id of each recorded decision, or None where the server records none."""
        return [answer.decision for answer in self]

    def to_frame(self, index: Any = None) -> Any:
        """Return the answers as a pandas data frame.

        Its columns are `label`, one `probability …` per class, `leaf` and `decision`.
        """
        import pandas

        records = []
        for answer in self:
            shares = {f"probability {name}": share for name, share in answer.probabilities.items()}
            recorded = {} if answer.decision is None else {"decision": answer.decision}
            records.append({"label": answer.label, **shares, "leaf": answer.leaf, **recorded})
        return pandas.DataFrame.from_records(records, index=index)
