"""Format the measure by which candidates are ranked on unseen rows."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.tree.numbers import THIN, number_text, points_text


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Measure of a ranking: accuracy or, with `by_cost`, cost per row in a unit such as EUR."""

    by_cost: bool = False
    unit: str = ""

    @property
    def name(self) -> str:
        """Name of the measure in the API."""
        return "cost_per_row" if self.by_cost else "accuracy"

    @property
    def title(self) -> str:
        return "Cost per row" if self.by_cost else "Accuracy"

    @property
    def best(self) -> str:
        """Word for the best value."""
        return "lowest" if self.by_cost else "highest"

    @property
    def better(self) -> str:
        return "cheaper" if self.by_cost else "more accurate"

    @property
    def factor(self) -> float:
        """Factor from values to the numbers in a figure."""
        return 1.0 if self.by_cost else 100.0

    @property
    def suffix(self) -> str:
        """Unit to append to a number."""
        if not self.by_cost:
            return f"{THIN}%"
        return f" {self.unit}" if self.unit else ""

    def value(self, mean: float) -> str:
        """Format a mean as "91.3" or "3.42", without the unit."""
        return number_text(mean) if self.by_cost else points_text(mean)

    def text(self, mean: float) -> str:
        """Format a mean as "91.3 %" or "3.42 EUR"."""
        return f"{self.value(mean)}{self.suffix}"

    def error(self, error: float) -> str:
        """Format a standard error as "1.2" or "0.31", without the unit."""
        return number_text(error) if self.by_cost else f"{100 * error:.1f}"

    def difference(self, difference: float) -> str:
        """Format a difference as "2.1 points" or "0.31 EUR"."""
        return f"{number_text(difference)}{self.suffix}" if self.by_cost else f"{points_text(difference)} points"


ACCURACY = Measure()
