"""Random changes of model files: values, structure and evidence."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from tests.trainer.check.recount.search_settings import OF_THE_SEARCH

Path = tuple[Any, ...]
# These members say nothing about the tree or about claims on it.
ASIDE = {
    "name", "version", "seconds", "nodes", "cuts", "solver", "solver_version", "warm_start_objective", "time_limit",
    "memory_limit", "threads", "first_tree", "first_trees", "exact_seconds", "search_seconds", "seed",
}  # fmt: skip


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield every place of a document."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def mutated(document: dict[str, Any], draw: random.Random) -> tuple[dict[str, Any], str]:
    """Return a copy with one random change, and a description of the change."""
    for _ in range(100):
        changed = json.loads(json.dumps(document))
        # Each part of the file is equally likely. Otherwise most changes would concern long lists.
        top = draw.choice([key for key in document if key not in ("format", "format_version", "version", "name")])
        inside = [(top, *path) for path in places(document[top])] or [(top,)]
        path = draw.choice(inside)
        holder = changed
        for key in path[:-1]:
            holder = holder[key]
        what = _change(holder, path[-1], draw)
        if changed != document:
            return changed, f"{'.'.join(map(str, path))}: {what}"
    raise AssertionError("nothing could be changed")


def _change(holder: Any, key: Any, draw: random.Random) -> str:
    old = holder[key]
    if isinstance(holder, list) and len(holder) > 1 and draw.random() < 0.2:
        other = draw.randrange(len(holder))
        holder[key], holder[other] = holder[other], holder[key]
        return f"swapped with {other}"
    if draw.random() < 0.1:
        del holder[key]
        return "removed"
    if isinstance(old, bool):
        new: Any = not old
    elif isinstance(old, int):
        new = draw.choice([old + 1, old - 1, old * 2, 0, -old, old + 0.5, None])
    elif isinstance(old, float):
        new = draw.choice([old + 1e-3, old - 1e-3, old * 2, 0.0, 1.0, -old, old + 1e-6, None])
    elif isinstance(old, str):
        new = draw.choice([old + "x", old[:-1], old.swapcase(), "", "1/3", "optimal", None])
    elif old is None:
        new = draw.choice([0, 1, "a", [], {}, 0.5])
    elif isinstance(old, list) and old:
        new = draw.choice([old[:-1], [*old, old[-1]], old[::-1], []])
    else:
        new = draw.choice([None, 0, [], {}])
    holder[key] = new
    return f"{str(old)[:40]!r} became {str(new)[:40]!r}"


def claims_of(value: Any) -> Any:
    """Return a document without the members that claim nothing."""
    if isinstance(value, dict):
        return {
            k: claims_of(v) for k, v in value.items() if not (k in ASIDE and not isinstance(v, list)) and v is not None
        }
    return [claims_of(v) for v in value] if isinstance(value, list) else value


# Settings of the search say how a tree was found, not which tree it is. TOLD lists evidence about the search.
SETTINGS = ASIDE | OF_THE_SEARCH | {"big_m", "test_share", "folds"}
TOLD = {
    "dynamic-programming",
    "interval-pruning",
    "wishes",
    "leaf-frontier",
    "coefficient-frontier",
    "frontier",
    "optimal-trees",
    "planes",
}
CLAIMED = {
    "kind",
    "cost",
    "bound",
    "n",
    "most",
    "points",
    "unsettled",
    "count",
    "listed",
    "groups",
    "pairs",
    "proved",
}  # members of evidence
EMPTY: tuple[Any, ...] = (None, "", "none", 0, [], {})  # values that request nothing or say nothing


def _parameters(given: dict[str, Any]) -> dict[str, Any]:
    found = {k: v for k, v in given.items() if k not in SETTINGS and v not in EMPTY}
    if not given.get("costs"):
        found.pop("cost_unit", None)  # without costs, their unit says nothing
    least = {"min_leaf": 1, "min_node": 2, "max_card": 0}  # these values and smaller ones restrict nothing
    return {k: v for k, v in found.items() if k not in least or not isinstance(v, int | float) or v > least[k]}


def said(document: dict[str, Any]) -> dict[str, Any]:
    """Return the claims of a document, without search settings, evidence of the search, and equivalent cuts.

    Cuts are equivalent if they send the same rows to the left, which the counts of the nodes show.
    """
    found = {k: v for k, v in document.items() if k not in ("name", "version")}
    found["parameters"] = _parameters(document.get("parameters") or {})
    certificate = document.get("certificate") or {}
    kept = [e for e in certificate.get("evidence") or [] if isinstance(e, dict) and e.get("kind") in TOLD]
    own = {k: v for k, v in certificate.items() if k not in ASIDE | {"evidence", "unproved"}}
    parts = [{k: _points(v) if k == "points" else v for k, v in e.items() if k in CLAIMED} for e in kept]
    found["certificate"] = own | {"evidence": parts}
    rows = document.get("rows") or {}
    trees = [[_node(v) for v in tree] for tree in rows.get("fold_trees") or []]
    found["rows"] = rows | {"fold_trees": trees}
    found["nodes"] = [_node(v) for v in document["nodes"]]
    return found


def _points(points: Any) -> Any:
    """Return the points of a frontier, without the cuts of their trees."""
    if not isinstance(points, list) or not all(isinstance(p, dict) and isinstance(p.get("tree"), list) for p in points):
        return points
    return [p | {"tree": [_node(v) for v in p["tree"]]} for p in points]


def _node(node: dict[str, Any]) -> dict[str, Any]:
    split = node.get("split")
    if split is None:
        return node
    return node | {
        "split": {
            k: v
            for k, v in split.items()
            if k not in ("threshold", "low", "high", "coefficients", "categories", "features", "feature", "kind")
        }
    }


def lies(changed: dict[str, Any], original: dict[str, Any]) -> bool:
    """Return whether a changed document may claim more than the original."""
    new = said(changed)
    old = said(original)
    known = old["certificate"]["evidence"]
    parts = new["certificate"].pop("evidence")
    new["certificate"]["evidence"] = []
    told_before = all(any(claims_no_more(part, other) for other in known) for part in parts)
    old["certificate"]["evidence"] = []
    return not (told_before and claims_no_more(new, old))


def claims_no_more(changed: Any, original: Any) -> bool:
    """Return whether the changed value claims no more than the original one, which means that only parts were removed."""
    if changed in EMPTY and not isinstance(changed, bool):
        return True
    if isinstance(changed, dict) and isinstance(original, dict):
        return all(k in original and claims_no_more(v, original[k]) for k, v in changed.items())
    if isinstance(changed, list) and isinstance(original, list):
        return len(changed) == len(original) and all(map(claims_no_more, changed, original))
    if isinstance(changed, float) and isinstance(original, float | int):
        return abs(changed - original) <= 1e-9 * max(1.0, abs(original))
    return changed == original
