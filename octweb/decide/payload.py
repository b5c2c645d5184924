"""Build the data for the scripts of a questionnaire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from octweb.core.methods import title_of
from octweb.core.names import split_name
from octweb.decide.actions import marks_of
from octweb.registry.document.model_files import model_file
from octweb.registry.document.units import statistics_of
from octweb.registry.models import TreeModel
from trainer.explain.carried import permission_records, tree_data
from trainer.explain.permission import permissions
from trainer.explain.statistics import statistics_of_model


def payload(
    model: TreeModel,
    *,
    inside: bool,
    rows: bool = True,
    unseen: Sequence[tuple[int, int]] | None = None,
    heading: str = "h1",
    key: str = "",
) -> dict[str, Any]:
    """Return the tree, and texts about the model.

    `rows` says whether counts of training rows may be shown. `inside` says whether the user may see the rows. `unseen`
    has the pair (correct, all) of unseen rows by node. `key` identifies the answers that a browser stores for this
    tree. By default, it is the hash of the model file, which depends on the training rows.
    """
    tree = model_file(model).tree
    name, _ = split_name(model.title, title_of(model.method))
    allowed = permissions(tree.schema, marks_of(model))
    statistics = statistics_of(model, inside=inside)[0] if rows else statistics_of_model(tree)
    return {
        "tree": tree_data(tree, statistics, allowed, rows=rows, unseen=unseen),
        "meta": {
            "key": key or model.sha256,
            "permissions": permission_records(tree, allowed, rows=rows),
            "heading": heading,
            "foot": f"The tree decides nothing alone. {name}, version {model.version}.",
        },
    }
