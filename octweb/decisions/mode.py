"""The mode Records of a model page, a separate page; imports little: every command loads it."""

from octweb.registry.page.mode import Mode

MODE = Mode(
    id="records",
    label="Records",
    template="",
    context=lambda scene: {},
    page="records:list",
    shown=lambda scene: scene.inside,
)
