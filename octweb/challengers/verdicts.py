"""Count which model was right where the challenger's answer differs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from trainer.monitoring import challenger_evidence


@dataclass(frozen=True)
class Verdicts:
    """Counts of rows with different answers whose outcome is due, by the model that was right."""

    challenger: int = 0
    served: int = 0
    neither: int = 0
    unknown: int = 0

    @property
    def decided(self) -> int:
        """Rows on which exactly one of the two models was right."""
        return self.challenger + self.served

    @cached_property
    def odds(self) -> float:
        """Odds against "both are right equally often"."""
        return challenger_evidence(self.challenger, self.decided)
