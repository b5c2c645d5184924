"""Independent check of what a model file claims, from the rows alone: own reader, own router, own encoder, own search.

Nothing here is shared with the code that trains. Arithmetic is exact: numbers are compared as they are, sums as fractions of rows.
Each claim gets one line: "proved" (shown again that nothing is better), "recounted" (counted again and equal), "refuted", or
"cannot be judged" (says why).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trainer.check.recount import claims
from trainer.check.recount.counted import verify_counts
from trainer.check.recount.fewest import check_fewest_leaves
from trainer.check.recount.findings import Finding, damage, recounted, unjudged
from trainer.check.recount.proof import of_proof
from trainer.check.recount.restrictions import restrictions
from trainer.check.recount.scope import scope
from trainer.check.recount.search.impurity import splits
from trainer.check.recount.sizes import check_sizes
from trainer.check.recount.structure import claimless, structure
from trainer.check.recount.table.rows import TableRows, load
from trainer.check.recount.trees.costs import (
    answer_costs,
    check_costs,
    copies_of,
    cost_metrics,
    cost_objective,
    leaf_scale,
    rows_per_weight,
    searched_model,
)
from trainer.check.recount.trees.counts import (
    count_nodes,
    metrics,
    node_counts,
    objective,
    tree_objective,
    weight_counts,
)
from trainer.check.recount.trees.crossed import crossed
from trainer.check.recount.trees.empty import check_empty_cells
from trainer.check.recount.trees.grouped import grouped
from trainer.check.recount.trees.members import questions_asked
from trainer.check.recount.trees.prices import charges_of, check_prices, column_cost, lost_share
from trainer.check.recount.wishes import check_wishes
from trainer.errors import ModelFileError

REST = "all further claims"
FROM_COUNTS = "The model was trained from counts. Give their folder; `recount` counts the leaves again over rows."
UNREAD = "The file of rows is not the file of the training, or its rows are in another order. Give the file that was uploaded."


def verify(model_path: str | Path, data_path: str | Path, proof_path: str | Path | None = None) -> list[Finding]:
    """Check a model file against the rows it was trained on, with its proof if there is one.

    A model that was trained from counts is checked against their folder. Raises ModelFileError or DataError where one of the files
    cannot be read.
    """
    model = _read_text(Path(model_path))
    with damage():
        counted = bool((model.get("certificate") or {}).get("counts"))
    if counted:
        return (
            verify_counts(model, data_path)
            if Path(data_path).is_dir()
            else [unjudged("counts file", FROM_COUNTS, "basis")]
        )
    with damage():
        found = structure(model)
    if any(f.verdict == "refuted" for f in found):
        return [*found, unjudged(REST, "They describe a tree, but this is not a tree, or not a tree of this method.")]
    with damage():
        data = load(Path(data_path), model)
    if claimless(model):
        return [*found, _claims_nothing(model, data)]
    found += data.findings
    if any(f.verdict == "refuted" for f in data.findings):
        return [*found, unjudged(REST, UNREAD)]
    with damage():
        return [*found, *_of_tree(model, data, None if proof_path is None else Path(proof_path))]


def _read_text(path: Path) -> dict[str, Any]:
    def refuse(name: str) -> None:
        raise ModelFileError(f"The model file is damaged: {name} is not a number.")

    def once(members: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(found := dict(members)) < len(members):  # another reader may take the first of two
            raise ModelFileError("The model file is damaged: a member appears twice in the same object.")
        return found

    try:
        model = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse, object_pairs_hook=once)
    except ModelFileError:
        raise
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"The model file cannot be read: {error}.") from error
    if not isinstance(model, dict) or model.get("format") != "octweb-tree":
        raise ModelFileError('This is not an octweb model file: its "format" is not "octweb-tree".')
    if model.get("format_version") != 1:
        raise ModelFileError(f"The model file has format version {model.get('format_version')}; version 1 is read.")
    return model


def _claims_nothing(model: dict[str, Any], data: TableRows) -> Finding:
    """Return the line of a file that states no more than a tree; `data` holds all rows of the table."""
    _, counts = count_nodes(model, model["nodes"], data.rows)
    same = node_counts(model["nodes"], counts).verdict == "recounted"
    words = "reach its nodes as it lists them" if same else "are not those that its nodes count, and it names no rows"
    return recounted(
        "claims",
        True,
        f"The file claims nothing: a tree without a method and a certificate. The rows of the table {words}.",
    )


def _of_tree(model: dict[str, Any], data: TableRows, proof: Path | None) -> list[Finding]:
    """What the rows say about every claim of a tree with a valid structure."""
    rows = data.training
    nodes = model["nodes"]
    leaf, counts = count_nodes(model, nodes, rows)
    costs = answer_costs(model, rows)
    value = tree_objective(model, counts) if costs is None else cost_objective(model, costs, leaf)
    value -= lost_share(column_cost(model, rows, leaf), rows, costs)
    found = [node_counts(nodes, counts), *objective(model, counts, value)]
    found += [
        *check_costs(model, rows, costs, leaf),
        *check_prices(model, rows, costs, leaf),
        *check_empty_cells(model, nodes, rows),
        *metrics(model, data, counts),
        *weight_counts(model, data, leaf),
        *cost_metrics(model, data),
        *crossed(model, data),
        *grouped(model, data),
        *restrictions(model, counts, rows, leaf),
    ]
    found += [*check_wishes(model), scope(model, rows), *questions_asked(model, rows)]
    found += [
        claims.prices(model, counts[0], leaf_scale(costs)),
        claims.status(model),
        *check_sizes(model),
        *claims.gap(model["certificate"]),
    ]
    if any(f.verdict == "refuted" for f in found):
        return [*found, unjudged(REST, "The count differs from the file.")]
    searched = rows if costs is None else copies_of(rows, costs)
    seen = searched_model(model, costs)
    shown, errors = ([], ()) if proof is None else of_proof(seen, searched, proof)
    proved = {f.claim for f in shown if f.verdict == "proved"}
    own = [
        *claims.check_bound(seen, searched, proved, charges_of(model, costs)),
        *claims.wishes(seen, searched),
        *splits(
            model,
            searched,
            counts if costs is None else count_nodes(model, nodes, searched)[1],
            rows_per_weight(rows, costs),
        ),
        *claims.evidence(seen, searched, errors),
        *check_fewest_leaves(model, rows, counts, proof),
    ]
    replaced = {f.claim for f in shown}
    own = [f for f in own if f.claim not in replaced or f.verdict == "refuted"] + shown
    return [
        *found,
        *own,
        *claims.optimal(model, own, value),
        *claims.unknown(model),
        *claims.provenance(model),
    ]
