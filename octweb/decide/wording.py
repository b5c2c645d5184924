"""Read and store the owner's texts for the answers of a tree."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from rest_framework.exceptions import ValidationError

from octweb.audit import actions as audit
from octweb.core.problems import Conflict
from octweb.decide.actions import CONTROL_CHARACTERS, is_storable, require_owner, store_guidance
from octweb.decide.models import Guidance
from octweb.registry.document.model_files import model_file
from octweb.registry.models import State, TreeModel
from trainer.errors import list_names
from trainer.tree.nodes import Tree

MAX_ERRORS = 20  # that one answer names
MAX_WORDS = 500  # characters of one text
ANSWERS = ("yes", "no")
# states in which the owner may change the texts; later, they belong to the approval
OPEN_STATES = (State.DRAFT, State.REJECTED)
Texts = Mapping[str, Mapping[str, str]]


def questions_of(model: TreeModel) -> list[dict[str, Any]]:
    """Return each question of the tree in order, with its nodes and the texts for its answers.

    Words that a draft does not have are those of the newest earlier version with the same question. The request for approval
    stores them, so that nobody changes an approved version by the texts of another one.
    """
    return _questions(model, inherits=model.state in OPEN_STATES)


def _questions(model: TreeModel, *, inherits: bool) -> list[dict[str, Any]]:
    tree = model_file(model).tree
    own = _stored(model)
    is_partial = any(key not in own for key in _nodes_by_key(tree))
    earlier = _earlier(model) if inherits and is_partial else {}
    found = []
    for key, nodes in _nodes_by_key(tree).items():
        texts = own.get(key, earlier.get(key, {}))
        split = tree.nodes[nodes[0]].split
        assert split is not None
        words = {answer: texts.get(answer, "") for answer in ANSWERS}
        found.append({"nodes": nodes, "question": split.text(tree.schema)} | words)
    return found


def write_words(model: TreeModel, *, by: Any, texts: Sequence[Mapping[str, Any]]) -> None:
    """Store texts for answers. Each record has a `node` and texts for `yes` and `no`; a missing one stays unchanged.

    After approval was requested, only an administrator may change them. Raises ValidationError, Conflict and
    PermissionDenied.
    """
    require_owner(model, by)
    with transaction.atomic():
        audit.hold()  # so that no request for approval and no other texts come in between
        nodes = {node: question for question in questions_of(model) for node in question["nodes"]}
        _refuse_texts(texts, nodes)
        changed = {int(text["node"]): {a: str(text[a]).strip() for a in ANSWERS if a in text} for text in texts}
        if all(nodes[node][answer] == words for node, said in changed.items() for answer, words in said.items()):
            return
        state = State(TreeModel.objects.values_list("state", flat=True).get(pk=model.pk))
        if state not in OPEN_STATES and not by.is_staff:
            raise Conflict(
                f"{model} is {state.label.lower()}, so its texts belong to its review. Ask an administrator to change them, or "
                "withdraw the model first."
            )
        for node, said in changed.items():
            nodes[node].update(said)
        _store(model, by, nodes)


def _refuse_texts(texts: Sequence[Mapping[str, Any]], nodes: Mapping[int, Any]) -> None:
    errors = {}
    for place, text in enumerate(texts):
        for name, why in _problems(text, nodes):
            errors[f"texts[{place}].{name}"] = why
        if len(errors) >= MAX_ERRORS:
            break
    if errors:
        raise ValidationError(errors)


def adopt_words(model: TreeModel) -> None:
    """Store the words of earlier versions as those of this one, so that its review and its record contain them."""
    nodes = {node: question for question in _questions(model, inherits=True) for node in question["nodes"]}
    if _texts(model, nodes) != _stored(model):
        _store(model, model.owner, nodes)


def _store(model: TreeModel, by: Any, nodes: Mapping[int, Mapping[str, Any]]) -> None:
    store_guidance(model, by, "worded reasons", wording=_texts(model, nodes))


def _texts(model: TreeModel, nodes: Mapping[int, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return the texts to store, by question.

    A question without texts is stored only if an earlier version has texts for it.
    """
    keys = _nodes_by_key(model_file(model).tree)
    earlier = _earlier(model)
    said = {key: {a: nodes[numbers[0]][a] for a in ANSWERS if nodes[numbers[0]][a]} for key, numbers in keys.items()}
    return {key: words for key, words in said.items() if words or earlier.get(key)}


def _problems(text: Mapping[str, Any], nodes: Mapping[int, Any]) -> list[tuple[str, str]]:
    if text.get("node") not in nodes:
        return [
            (
                "node",
                f"{str(text.get('node'))[:20]} is no question of this tree. Its nodes are {list_names([*map(str, nodes)])}.",
            )
        ]
    said = {answer: str(text[answer]) for answer in ANSWERS if answer in text}
    return [(answer, why) for answer, words in said.items() if (why := _problem(words))]


def _problem(words: str) -> str:
    if len(words) > MAX_WORDS:
        return f"This has {len(words):,} characters; the limit is {MAX_WORDS}. Shorten it."
    return "" if is_storable(words) else CONTROL_CHARACTERS


def _stored(model: TreeModel) -> Texts:
    guidance = Guidance.objects.filter(model=model).only("wording").first()
    return {} if guidance is None else dict(guidance.wording)


def _earlier(model: TreeModel) -> Texts:
    """Return the texts of earlier versions by question. Newer versions take precedence."""
    texts: dict[str, Mapping[str, str]] = {}
    versions = Guidance.objects.filter(
        model__family=model.family_id, model__owner=model.owner_id, model__version__lt=model.version
    )
    for guidance in versions.order_by("model__version").only("wording"):
        texts |= guidance.wording
    return texts


def _nodes_by_key(tree: Tree) -> dict[str, list[int]]:
    """Return the nodes of each question. The key of a question is its split, as JSON of the model file."""
    nodes: dict[str, list[int]] = {}
    for node in tree.nodes:
        if node.split is not None:
            key = json.dumps(node.split.to_json(tree.schema), sort_keys=True, ensure_ascii=False)
            nodes.setdefault(key, []).append(node.id)
    return nodes
