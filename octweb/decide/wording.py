"""Read and store the owner's texts for the answers of a tree."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from rest_framework.exceptions import ValidationError

from octweb.audit import actions as audit
from octweb.core.problems import Conflict
from octweb.decide.actions import require_owner, store_guidance, text_problem
from octweb.decide.models import Guidance
from octweb.registry.document.model_files import model_file
from octweb.registry.models import State, TreeModel
from trainer.errors import list_names
from trainer.tree.nodes import Tree

MAX_ERRORS = 20  # a refusal names about this many wrong texts at most
MAX_TEXT_CHARACTERS = 500  # characters of one text
ANSWERS = ("yes", "no")
# states in which the owner may change the texts; later, they belong to the approval
OPEN_STATES = (State.DRAFT, State.REJECTED)
Texts = Mapping[str, Mapping[str, str]]


def questions_of(model: TreeModel) -> list[dict[str, Any]]:
    """Return each question of the tree in order, with its nodes and the texts for its answers.

    A draft without texts for a question shows those of the newest earlier version with the same question. The request for
    approval stores them, so that later changes of another version do not change an approved one.
    """
    return _questions(model, inherits=model.state in OPEN_STATES)


def _questions(model: TreeModel, *, inherits: bool) -> list[dict[str, Any]]:
    tree = model_file(model).tree
    nodes_by_key = _nodes_by_key(tree)
    own = _stored(model)
    earlier = _earlier(model) if inherits and nodes_by_key.keys() - own.keys() else {}
    questions = []
    for key, nodes in nodes_by_key.items():
        texts = own.get(key, earlier.get(key, {}))
        split = tree.nodes[nodes[0]].split
        assert split is not None
        words = {answer: texts.get(answer, "") for answer in ANSWERS}
        questions.append({"nodes": nodes, "question": split.text(tree.schema)} | words)
    return questions


def is_locked(state: str, user: Any) -> bool:
    """Return whether the texts belong to a review, so that `user` may not change them."""
    return state not in OPEN_STATES and not user.is_staff


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
        if all(nodes[node][answer] == words for node, new in changed.items() for answer, words in new.items()):
            return
        state = State(TreeModel.objects.values_list("state", flat=True).get(pk=model.pk))
        if is_locked(state, by):
            raise Conflict(
                f"{model} is {state.label.lower()}, so its texts belong to its review. Ask an administrator to change them, or "
                "withdraw the model first."
            )
        for node, new in changed.items():
            nodes[node].update(new)
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
    earlier = _earlier(model)
    texts = {}
    for key, numbers in _nodes_by_key(model_file(model).tree).items():
        question = nodes[numbers[0]]
        words = {answer: question[answer] for answer in ANSWERS if question[answer]}
        if words or earlier.get(key):
            texts[key] = words
    return texts


def _problems(text: Mapping[str, Any], nodes: Mapping[int, Any]) -> list[tuple[str, str]]:
    if text.get("node") not in nodes:
        node = str(text.get("node"))[:20]
        names = list_names([*map(str, nodes)])
        return [("node", f"{node} is not a node that asks a question. These nodes do: {names}.")]
    problems = {answer: text_problem(str(text[answer]), MAX_TEXT_CHARACTERS) for answer in ANSWERS if answer in text}
    return [(answer, problem) for answer, problem in problems.items() if problem]


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
