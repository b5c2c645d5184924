"""Define the mode Decisions of a model page; every command loads it, so it imports little."""

from octweb.registry.page.mode import Mode

MODE = Mode(id="decisions", label="Decisions", template="", context=lambda scene: {}, page="decide:decision")
