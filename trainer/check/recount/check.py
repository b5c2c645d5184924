"""Check the claims of a model file independently, from the rows alone.

The checker has its own reader, router, encoder and search, and shares no code with training. Arithmetic is exact.
Each claim gets one finding: "proved" (no better tree exists), "recounted" (counted again and equal), "refuted", or "cannot be judged"
(with the reason).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trainer.check.recount import claims
from trainer.check.recount.counted import verify_counts
from trainer.check.recount.fewest import check_fewest_leaves
from trainer.check.recount.findings import Finding, damage, recount_finding, unjudged_finding
from trainer.check.recount.proof import check_model_proof
from trainer.check.recount.restrictions import restrictions
from trainer.check.recount.scope import scope
from trainer.check.recount.search.impurity import check_splits
from trainer.check.recount.search.subtrees import check_subtrees
from trainer.check.recount.sizes import check_sizes
from trainer.check.recount.structure import has_no_claims, structure
from trainer.check.recount.table.rows import TableRows, load
from trainer.check.recount.trees.costs import (
    answer_costs,
    check_cost_metrics,
    check_costs,
    copies_of,
    cost_objective,
    leaf_scale,
    rows_per_weight,
    searched_model,
)
from trainer.check.recount.trees.counts import (
    check_metrics,
    check_node_counts,
    check_objective,
    check_weight_counts,
    count_nodes,
    tree_objective,
)
from trainer.check.recount.trees.cross_validation import check_cross_validation
from trainer.check.recount.trees.empty import check_empty_cells
from trainer.check.recount.trees.intervals import check_intervals
from trainer.check.recount.trees.members import questions_asked
from trainer.check.recount.trees.prices import charges_of, check_prices, column_cost, lost_share
from trainer.check.recount.wishes import check_wishes
from trainer.errors import ModelFileError

REST = "all further claims"
FROM_COUNTS = "The model was trained from counts. Give their folder; `recount` counts the leaves again over rows."
UNREAD = "The file of rows is not the file of the training, or its rows are in another order. Give the file that was uploaded."


def verify(model_path: str | Path, data_path: str | Path, proof_path: str | Path | None = None) -> list[Finding]:
    """Check a model file against its training rows, and its proof if there is one.

    Parameters
    ----------
    model_path : path
        The model file.
    data_path : path
        The uploaded table, or the folder of counts of a model that was trained from counts.
    proof_path : path, optional
        The proof of the model, in the format of docs/proof-format.md.

    Returns
    -------
    list of Finding
        One for each claim; `verdict` gives that of the whole file.

    Raises
    ------
    ModelFileError, DataError
        If a file cannot be read.
    """
    model = _read_text(Path(model_path))
    with damage():
        is_counted = bool((model.get("certificate") or {}).get("counts"))
    if is_counted:
        if not Path(data_path).is_dir():
            return [unjudged_finding("counts file", FROM_COUNTS, "basis")]
        return verify_counts(model, data_path, None if proof_path is None else Path(proof_path))
    with damage():
        findings = structure(model)
    if any(f.verdict == "refuted" for f in findings):
        return [
            *findings,
            unjudged_finding(REST, "They were not checked, since the nodes form no tree, or no tree of this method."),
        ]
    with damage():
        data = load(Path(data_path), model)
    if has_no_claims(model):
        return [*findings, _claims_nothing(model, data)]
    findings += data.findings
    if any(f.verdict == "refuted" for f in data.findings):
        return [*findings, unjudged_finding(REST, UNREAD)]
    with damage():
        return [*findings, *_check_tree(model, data, None if proof_path is None else Path(proof_path))]


def _read_text(path: Path) -> dict[str, Any]:
    def refuse(name: str) -> None:
        raise ModelFileError(
            f"The model file is damaged: {name} is not a JSON number. Give the file as octweb wrote it."
        )

    def once(members: list[tuple[str, Any]]) -> dict[str, Any]:
        # JSON readers differ in which of two equal names they take, so a duplicate could hide a value
        if len(by_name := dict(members)) < len(members):
            raise ModelFileError(
                "The model file is damaged: a member appears twice in the same object. Give the file as octweb wrote it."
            )
        return by_name

    try:
        model = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse, object_pairs_hook=once)
    except ModelFileError:
        raise
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"The model file is not JSON: {error}. Give the file as octweb wrote it.") from error
    if not isinstance(model, dict) or model.get("format") != "octweb-tree":
        raise ModelFileError('This is not an octweb model file: its "format" is not "octweb-tree".')
    if model.get("format_version") != 1:
        raise ModelFileError(
            f"The model file has format version {model.get('format_version')}; this checker reads only version 1. "
            "Use the checker of the version of octweb that wrote the file."
        )
    return model


def _claims_nothing(model: dict[str, Any], data: TableRows) -> Finding:
    """Return the finding of a file that holds a tree without claims; `data` has all rows of the table."""
    _, counts = count_nodes(model, model["nodes"], data.rows)
    same = check_node_counts(model["nodes"], counts).verdict == "recounted"
    words = "reach its nodes as it lists them" if same else "are not those that its nodes count, and it names no rows"
    return recount_finding(
        "claims",
        True,
        f"The file claims nothing: a tree without a method and a certificate. The rows of the table {words}.",
    )


def _check_tree(model: dict[str, Any], data: TableRows, proof: Path | None) -> list[Finding]:
    """Check every claim of a tree with a valid structure against the rows."""
    rows = data.training
    nodes = model["nodes"]
    leaf, counts = count_nodes(model, nodes, rows)
    costs = answer_costs(model, rows)
    value = tree_objective(model, counts) if costs is None else cost_objective(model, costs, leaf)
    value -= lost_share(column_cost(model, rows, leaf), rows, costs)
    findings = [check_node_counts(nodes, counts), *check_objective(model, counts, value)]
    findings += [
        *check_costs(model, costs, leaf),
        *check_prices(model, rows, costs, leaf),
        *check_empty_cells(model, nodes, rows),
        *check_metrics(model, data, counts),
        *check_weight_counts(model, data, leaf),
        *check_cost_metrics(model, data),
        *check_cross_validation(model, data),
        *check_intervals(model, data),
        *restrictions(model, counts, rows, leaf),
    ]
    findings += [*check_wishes(model), scope(model, rows), *questions_asked(model, rows)]
    findings += [
        claims.prices(model, counts[0], leaf_scale(costs)),
        claims.status(model),
        *check_sizes(model),
        *claims.gap(model["certificate"]),
        *claims.single_question(model),
    ]
    if any(f.verdict == "refuted" for f in findings):
        return [*findings, unjudged_finding(REST, "The count differs from the file.")]
    searched = rows if costs is None else copies_of(rows, costs)
    search_model = searched_model(model, costs)
    searched_counts = counts if costs is None else count_nodes(model, nodes, searched)[1]
    charges = charges_of(model, costs)
    proof_findings, errors = ([], ()) if proof is None else check_model_proof(search_model, searched, proof, charges)
    proved = {f.claim for f in proof_findings if f.verdict == "proved"}
    optimality = [
        *claims.check_bound(search_model, searched, proved, charges),
        *claims.wishes(search_model, searched),
        *check_splits(
            model,
            searched,
            searched_counts,
            rows_per_weight(rows, costs),
        ),
        *check_subtrees(search_model, searched, searched_counts),
        *claims.evidence(search_model, searched, errors),
        *check_fewest_leaves(model, rows, counts, proof),
    ]
    replaced = {f.claim for f in proof_findings}
    optimality = [f for f in optimality if f.claim not in replaced or f.verdict == "refuted"] + proof_findings
    return [
        *findings,
        *optimality,
        *claims.optimal(model, optimality, value),
        *claims.unknown_members(model),
        *claims.provenance(model),
    ]
