"""Find the reasons for a model's answer, in the words of its owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from octweb.registry import hooks
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from trainer.data.column_statistics import ColumnStatistics
from trainer.dtypes import FloatArray
from trainer.errors import join_with_and
from trainer.explain.reasons import ReasonFinder, reasons_record
from trainer.explain.words import enough_texts

RULE = (
    "Up to four smallest sets of answers on the path whose change alone leads to another answer, the smallest first. "
    "The tree itself predicted each changed row."
)
RULE_OF_SUMS = (
    "Up to four sets of answers on the path whose change alone leads to another answer. They are those of the smallest changes, since "
    "the tree weighs several columns in one question; a smaller set is possible. The tree itself predicted each changed row."
)


class ModelReasons:
    """Finder of the reasons for a model's answers.

    `seconds` limits the integer programs for splits on weighted sums.
    """

    def __init__(self, model: TreeModel, statistics: Sequence[ColumnStatistics], *, seconds: float) -> None:
        self._tree = model_file(model).tree
        self._finder = ReasonFinder(self._tree, statistics, seconds=seconds)
        self._words = {node: question for question in hooks.wording(model) for node in question["nodes"]}

    def record(self, row: FloatArray) -> dict[str, Any]:
        """Return the reasons for the answer to a row, as the API does: those of `reasons_record`, with words for each."""
        record = reasons_record(self._finder, row)
        for reason in record["principal"]:
            for answer in reason["answers"]:
                answer["words"] = self._words_of(answer)
        columns = {column.name: column for column in self._tree.schema}
        for item in record["columns"]:
            item["words"] = enough_texts(columns[item["column"]], item["enough"])
        return {"rule": RULE if record["exact"] else RULE_OF_SUMS} | record

    def _words_of(self, answer: Mapping[str, Any]) -> str:
        question = answer["question"]
        if names := answer.get("empty"):  # the owner's words would state a value that the row does not have
            verb = "was" if len(names) == 1 else "were"
            return (
                f"{join_with_and(names)} {verb} empty. This counts as {answer['answer']} to the question: {question}?"
            )
        own: str = self._words.get(answer["node"], {}).get(answer["answer"], "")
        return own or f"{question}? {answer['answer'].capitalize()}."
