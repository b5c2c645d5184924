"""How a messy table is read: what was taken for what and why, switches for it, and the same again for the rows to come."""

from trainer.data.parsing.column import ColumnReading
from trainer.data.parsing.given import EVERY, ParsingChoices
from trainer.data.parsing.reading import ColumnParsing, around_notes, reading_of

__all__ = ["EVERY", "ColumnParsing", "ColumnReading", "ParsingChoices", "around_notes", "reading_of"]
