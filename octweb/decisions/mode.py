"""Define the mode Records of a model page; every command loads it, so it imports little."""

from octweb.registry.page.mode import Mode

MODE = Mode(
    id="records",
    label="Records",
    template="",
    context=lambda scene: {},
    page="records:list",
    shown=lambda scene: scene.can_change or scene.can_read_records,
)
