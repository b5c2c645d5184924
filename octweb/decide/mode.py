"""Define the mode Decisions of a model page, which is a separate page."""

from octweb.registry.page.mode import Mode

MODE = Mode(id="decisions", label="Decisions", template="", context=lambda scene: {}, page="decide:decision")
