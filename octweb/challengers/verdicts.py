"""Count who was right where the answers of a challenger differ."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from trainer.monitoring import challenger_evidence


@dataclass(frozen=True)
class Verdicts:
    """Rows with different answers whose outcome is due, by who was right."""

    challenger: int = 0
    served: int = 0
    neither: int = 0
    unknown: int = 0

    @property
    def decided(self) -> int:
        """Rows on which one of the two was right."""
        return self.challenger + self.served

    @cached_property
    def odds(self) -> float:
        """The evidence against "both are right equally often"."""
        return challenger_evidence(self.challenger, self.decided)
