"""Parse messy tables by guessed or chosen formats, repeatable for new rows."""

from trainer.data.parsing.column import ColumnReading
from trainer.data.parsing.given import EVERY, ParsingChoices
from trainer.data.parsing.reading import ColumnParsing, around_notes, reading_of

__all__ = ["EVERY", "ColumnParsing", "ColumnReading", "ParsingChoices", "around_notes", "reading_of"]
