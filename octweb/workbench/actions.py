"""Change workbenches, for pages, the API and the worker."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from rest_framework.exceptions import ValidationError

from octweb.core import deleting
from octweb.core.names import checked_name
from octweb.core.problems import Conflict, Unprocessable
from octweb.datasets import stored
from octweb.datasets.models import Dataset
from octweb.jobs import queue
from octweb.jobs.models import FINISHED, RunStatus
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions as registry
from octweb.registry.lifecycle.access import may_see_rows
from octweb.registry.models import TreeModel
from octweb.runs.actions import check_settings, counted_parameters, within_limits
from octweb.runs.dependence import ROLES
from octweb.runs.models import TrainingRun
from octweb.workbench.models import Step, StepKind, StepState, Workbench
from trainer.data.costs import EACH_ROW
from trainer.data.problem import SettingNames
from trainer.editing.questions import ONE_CATEGORY
from trainer.editing.wishes import read_wish
from trainer.editing.words import check_reasons
from trainer.errors import ParameterError
from trainer.evaluate.verdict import base_rate
from trainer.methods.base import Method
from trainer.methods.capabilities import Role
from trainer.registry import editable_ids, get, method_for
from trainer.table import ColumnSchema
from trainer.tree.file import from_json
from trainer.tree.nodes import Tree
from trainer.workbench.good_trees import good_request
from trainer.workbench.requests import check_editable, check_good_request, check_slack, editable_names

MOST_STEPS = 5000
NO_COUNT = (
    "Good trees are counted only for the method 'exact', without limits on leaves, recalls, pairs and numbers of columns, "
    "and from counts of a source also without costs. Open a workbench with such a tree."
)
MOST_WISHES = 100
MOST_TEXT = 1000
EDIT_SECONDS = 60.0  # default time limit for one answer


def open_for(
    *,
    owner: Any,
    model: TreeModel | None = None,
    dataset: Dataset | None = None,
    method: str = method_for(Role.ONE_PROVED).id,
    parameters: Mapping[str, Any] | None = None,
    test_share: float | None = None,
    name: str = "",
) -> Workbench:
    """Open a workbench for a model or a data set.

    Its first step requests the best tree, with the constraints of the model if it has some. Raises Unprocessable for a
    method without a workbench or a deleted data set, ParameterError for invalid settings, and Conflict.
    """
    dataset = dataset if model is None else model.dataset
    if model is not None and dataset is not None and not may_see_rows(owner, model):
        raise Unprocessable("The data set of this model is not yours. Ask its owner to give it to your team.")
    if dataset is None:
        raise Unprocessable(
            "The data set of this model is gone, and a workbench needs its rows. Open a workbench on another data set."
        )
    if not dataset.counts:
        stored.refuse_without_rows(dataset)
    values = dict(parameters or {})
    wishes: list[str] = []
    reasons: dict[str, str] = {}
    if model is not None:
        method = model.method
        values, model_test_share = _of_model(model, values)
        records = model_file(model).certificate.get("wishes") or ()
        wishes = [str(record["wish"]) for record in records]
        reasons = {str(record["wish"]): str(record["reason"]) for record in records if record.get("reason")}
        test_share = model_test_share if test_share is None else test_share
    bound = {} if model is None else _bound_columns(model)
    declared = _editable_method(method)
    if dataset.counts:
        values = {"time_limit": EDIT_SECONDS} | values
        values = counted_parameters(dataset, method, values, rows_needed=bool(test_share))
    checked = declared.settings({"time_limit": EDIT_SECONDS} | values)
    settings = within_limits(declared, checked.to_json(), said=values)
    check_settings(declared, checked, dataset)
    check_editable(declared, checked)
    with transaction.atomic():
        queue.check_waiting(Workbench, owner)
        bench = Workbench.objects.create(
            owner=owner,
            dataset=dataset,
            base=model,
            method=method,
            name=checked_name(name, most=200) or (f"{model.family.name}" if model else dataset.name),
            parameters=settings,
            test_share=test_share or 0.0,
            **bound,
            status=RunStatus.SUCCEEDED,  # no session runs until the first step
        )
        edit(bench, wishes=wishes, reasons=reasons)
    return bench


def _of_model(model: TreeModel, changes: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
    """Return the settings of a model, with `changes`, and its share of held-out rows."""
    method = _editable_method(model.method)
    file = model_file(model)
    declared = {p.name: p for p in method.parameters}
    parameters = {
        k: v for k, v in file.parameters.items() if k in declared and (v is not None or declared[k].unlimited)
    }
    if parameters.get("costs") == EACH_ROW and (run := TrainingRun.objects.filter(model=model).first()) is not None:
        parameters["costs"] = run.parameters["costs"]  # the costs of each row were computed from these rewards
    parameters["time_limit"] = EDIT_SECONDS
    support = method.workbench
    assert support is not None
    return parameters | dict(support.overrides) | dict(changes), float(file.parameters.get("test_share") or 0)


def _bound_columns(model: TreeModel) -> dict[str, str]:
    """Return the columns of groups, times and weights of a model's training, by role."""
    rows = model_file(model).rows or {}
    return {role: rows[role]["column"] for role in ROLES if rows.get(role)}


def _editable_method(method: str) -> Method:
    """Return the method. Raises Unprocessable if it has no workbench."""
    if method not in editable_ids():
        raise Unprocessable(
            f"The workbench edits trees of the methods {editable_names('and')}; this one is of '{method}'."
        )
    return get(method)


def ask(bench: Workbench, kind: Any, *, wishes: Sequence[str], request: Mapping[str, Any] | None = None) -> Step:
    """Add a step and wake the workbench. The worker stores the answer in the step.

    Raises Unprocessable, ValidationError and Conflict.
    """
    if kind == StepKind.GOOD and not bench.counts_good_trees:
        raise Unprocessable(NO_COUNT)
    if len(wishes) > MOST_WISHES or any(len(w) > MOST_TEXT for w in wishes):
        raise ValidationError(
            {
                "wishes": f"there may be at most {MOST_WISHES} wishes, each of at most {MOST_TEXT:,} characters. Leave some out."
            }
        )
    with transaction.atomic():
        locked = Workbench.objects.select_for_update().get(pk=bench.pk)
        last = locked.steps.aggregate(last=Max("number"))["last"] or 0
        if last >= MOST_STEPS:
            raise Conflict(
                f"This workbench has {MOST_STEPS:,} steps, which is the limit. Save its tree and open a new workbench from it."
            )
        step = Step.objects.create(
            workbench=locked,
            number=last + 1,
            parent=locked.position,
            kind=kind,
            wishes=list(wishes),
            request=dict(request or {}),
        )
        changes: dict[str, Any] = {"used": timezone.now()}
        if kind == StepKind.COMPLETE:
            changes["position"] = bench.position = step.number
        Workbench.objects.filter(pk=bench.pk).update(**changes)
        wake(bench)
    return step


def edit(
    bench: Workbench,
    *,
    wishes: Sequence[str] | None = None,
    add: Sequence[str] = (),
    drop: Sequence[str] = (),
    reasons: Mapping[str, str] | None = None,
) -> Step:
    """Request the best tree with these constraints, or with the current ones and some added or removed.

    `reasons` are the users' reasons for some constraints. A constraint that stays keeps its reason.

    Raises ParameterError for a reason without its constraint or a constraint that cannot be parsed, and what `ask`
    raises. Then nothing is changed.
    """
    if wishes is None:
        unknown = [w for w in drop if w not in current_wishes(bench)]
        if unknown:
            raise ValidationError({"drop": f"'{unknown[0][:200]}' is not among the wishes, so it cannot be dropped."})
        wishes = [w for w in readable_wishes(bench) if w not in drop]
        wishes += [w for w in add if w not in wishes]
        check_wishes(bench, "add", add)
    else:
        check_wishes(bench, "wishes", wishes)
    edit_reasons = {w: text for w, text in current_reasons(bench).items() if w in wishes}
    edit_reasons |= check_reasons(reasons or {}, wishes)
    return ask(bench, StepKind.COMPLETE, wishes=wishes, request={"reasons": edit_reasons} if edit_reasons else {})


def current_reasons(bench: Workbench) -> dict[str, str]:
    """Return the reasons of the current constraints, by their texts."""
    step = current(bench)
    return dict(step.request.get("reasons") or {}) if step else {}


def current(bench: Workbench) -> Step | None:
    """Return the current step, or None before the first one."""
    return bench.steps.filter(number=bench.position).first()


def last_tree(bench: Workbench, step: Step | None) -> Step | None:
    """Return the step whose tree is displayed, or None without one.

    It is this step if it has a tree, and otherwise the nearest step with a tree from which it was edited.
    """
    visited = set()
    while step is not None and not step.document and step.parent and step.number not in visited:
        visited.add(step.number)
        step = bench.steps.filter(number=step.parent).first()
    return step if step is not None and step.document else None


def ask_good_trees(bench: Workbench, request: Mapping[str, Any]) -> Step:
    """Request all good trees. A filter on answers compares with the tree that the workbench shows now.

    Raises ParameterError for an invalid field, Conflict if there is no tree to compare with, and what `ask` raises.
    Then no search starts.
    """
    request = {k: v for k, v in request.items() if v not in (None, "")}
    if bench.counts_good_trees:
        check_good_request(good_request(request), setting_names_of(bench))
        check_slack(good_request(request), bool(bench.parameters.get("costs")))
    if request.get("agree_rows"):
        shown_step = last_tree(bench, current(bench))
        if shown_step is None:
            raise Conflict("The workbench has no tree yet that others could agree with. Wait for its first answer.")
        request["agree_step"] = shown_step.number
    return ask(bench, StepKind.GOOD, wishes=[], request=request)


def current_wishes(bench: Workbench) -> list[str]:
    """Return the current constraints as texts."""
    step = current(bench)
    return list(step.wishes) if step else []


def check_wishes(bench: Workbench, field: str, wishes: Sequence[str]) -> None:
    """Raise ParameterError for `field` if one of these constraints cannot be parsed or is not supported."""
    for words in _refusals(bench, wishes).values():
        raise ParameterError({field: words})


def refused_wishes(bench: Workbench) -> dict[str, str]:
    """Return the reason for each invalid constraint of the current step, or {} unless the step failed."""
    step = current(bench)
    return _refusals(bench, step.wishes) if step is not None and step.state == StepState.FAILED else {}


def readable_wishes(bench: Workbench) -> list[str]:
    """Return the constraints of the current step without the invalid ones, which never took effect."""
    refused = refused_wishes(bench)
    return [wish for wish in current_wishes(bench) if wish not in refused]


def _refusals(bench: Workbench, wishes: Sequence[str]) -> dict[str, str]:
    if not wishes:
        return {}
    schema, classes = _names(bench)
    refused = {}
    for wish in wishes:
        try:
            read = read_wish(wish, schema, classes)
            if read.verb == "together" and not bench.groups_categories:
                raise ParameterError({"wish": ONE_CATEGORY.format(name=schema[read.column].name)})
        except ParameterError as error:
            refused[wish] = error.errors["wish"]
    return refused


def setting_names_of(bench: Workbench) -> SettingNames:
    """Return the names of the columns and classes that settings of the workbench may use."""
    schema, classes = _names(bench)
    return SettingNames(columns=tuple(column.name for column in schema), classes=tuple(classes))


def _names(bench: Workbench) -> tuple[Sequence[ColumnSchema], Sequence[str]]:
    """Return the columns and classes of a workbench, from its newest tree if it has one, otherwise from its data set."""
    answered = bench.steps.exclude(document="").order_by("number").last()
    if answered is not None:
        tree = from_json(json.loads(answered.document)).tree
        return tree.schema, tree.classes
    if bench.dataset.counts:
        return stored.counted_names(bench.dataset)
    table, labels = stored.load(bench.dataset)
    return table.schema, labels.classes


def undo(bench: Workbench) -> Step:
    """Return to the step that was edited, without a new search. Raises Conflict if there is none."""
    step = current(bench)
    if step is None or not step.parent:
        raise Conflict("There is nothing to undo, because this is the first step.")
    return _go(bench, step.parent)


def redo(bench: Workbench) -> Step:
    """Go to the newest later step that was edited from this one. Raises Conflict if there is none."""
    step = bench.steps.filter(kind=StepKind.COMPLETE, parent=bench.position, number__gt=bench.position).last()
    if step is None:
        raise Conflict("There is nothing to redo, because no step after this one was undone.")
    return _go(bench, step.number)


def go_to(bench: Workbench, number: int) -> Step:
    """Go to the step with this number. Raises ValidationError unless it is a request for a tree."""
    step = bench.steps.filter(kind=StepKind.COMPLETE, number=number).first()
    if step is None:
        raise ValidationError({"number": f"There is no step {number} to go to. Choose a number from the history."})
    return _go(bench, number)


def _go(bench: Workbench, number: int) -> Step:
    Workbench.objects.filter(pk=bench.pk).update(position=number, used=timezone.now())
    bench.position = number
    return bench.steps.get(number=number)


def stop(bench: Workbench) -> int:
    """Ask all unfinished steps to end with their incumbent, and return the number of these steps."""
    return bench.steps.filter(state__in=[StepState.WAITING, StepState.WORKING]).update(stop_requested=True)


def look_at_unseen(bench: Workbench) -> dict[str, Any] | None:
    """Return the metrics of the current tree on unseen rows with the base rate, and count this look.

    Return None, and count nothing, if no rows were held out. Raises Conflict if there is no tree.
    """
    step = current(bench)
    if step is None or not step.document:
        raise Conflict("There is no tree yet. Wait for the answer of the search.")
    file = from_json(json.loads(step.document))
    metrics = file.metrics.get("test")
    if metrics is None:
        return None
    rate = base_rate(file)
    with transaction.atomic():
        locked = Workbench.objects.select_for_update().get(pk=bench.pk)
        locked.unseen_looks += 1
        locked.save(update_fields=["unseen_looks"])
    bench.unseen_looks = locked.unseen_looks
    return metrics | {"base_rate": None if rate is None else rate.to_json()}


def save_version(bench: Workbench, *, title: str = "") -> TreeModel:
    """Save the current tree as a new version and request its proof.

    It becomes a version of the base model's name if that name belongs to the owner of the workbench. Its certificate
    contains the number of looks at unseen rows. Raises Conflict if the current step has no finished tree.
    """
    step = current(bench)
    if step is None or step.state != StepState.DONE or not step.document:
        raise Conflict("There is no finished tree to save. Wait for the answer, or take a wish back.")
    document = json.loads(step.document)
    document["certificate"]["unseen_looks"] = bench.unseen_looks
    family = bench.base.family if bench.base is not None else None
    mine = family is not None and family.owner_id == bench.owner_id
    model = registry.register(
        owner=bench.owner,
        document=document,
        dataset=bench.dataset,
        title=checked_name(title, most=200) or bench.title,
        name=family.name if family is not None and mine else None,
    )
    # if the workbench has no step left, the tree is still saved, but without a proof
    with contextlib.suppress(Conflict):
        ask(bench, StepKind.PROOF, wishes=step.wishes, request={"model": str(model.pk)})
    return model


def proof_step(bench: Workbench, model: TreeModel) -> Step | None:
    """Return the step that writes the proof of a saved version, or None if there is none."""
    return bench.steps.filter(kind=StepKind.PROOF, request__model=str(model.pk)).last()


def count_saved_versions(bench: Workbench) -> int:
    """Return the number of saved versions that are not deleted. Versions without a proof step are not counted."""
    models = bench.steps.filter(kind=StepKind.PROOF).values_list("request__model", flat=True)
    return TreeModel.objects.kept().filter(pk__in=list(models)).count()


def wake(bench: Workbench) -> bool:
    """Queue a sleeping workbench. Return whether it slept."""
    with transaction.atomic():
        slept = (
            Workbench.objects.kept()
            .filter(pk=bench.pk, status__in=FINISHED)
            .update(status=RunStatus.QUEUED, attempt=0, worker="", cancel_requested=False, finished=None, error="")
        )
        if slept:
            transaction.on_commit(lambda: queue.send(bench))
    return bool(slept)


def is_stalled(bench: Workbench) -> bool:
    """Return whether a step is unfinished although the job has ended.

    This happens if workers died too often, or if the workbench was closed.
    """
    return bench.status in FINISHED and bench.steps.filter(state__in=[StepState.WAITING, StepState.WORKING]).exists()


def wake_if_needed(bench: Workbench) -> None:
    """Queue a stalled workbench again. GET requests must not call this, because they must change nothing."""
    if is_stalled(bench):
        wake(bench)


def close(bench: Workbench) -> None:
    """Cancel the job of a workbench. Its steps stay. Raises Conflict if the workbench sleeps."""
    queue.cancel(bench)


def delete(bench: Workbench) -> None:
    """Soft-delete a workbench and cancel its job. It can be restored for some weeks."""
    with transaction.atomic():
        deleting.hide(bench)
        with contextlib.suppress(Conflict):  # an idle workbench has no session to close
            close(bench)


def bring_back(bench: Workbench) -> None:
    """Restore a deleted workbench and continue an unfinished search. Raises Conflict while its data set is deleted."""
    with transaction.atomic():
        deleting.bring_back(bench)
        wake_if_needed(bench)


def tidy(now: datetime) -> int:
    """Purge the workbenches that were deleted long enough ago, and return their number."""
    return deleting.purge(Workbench, now)


def open_holding(*, owner: Any, model: TreeModel, node: int, threshold: float) -> tuple[Workbench, str]:
    """Open a workbench of a model with another threshold fixed at a node. Return it and the place of the node.

    The splits on the path are fixed as well, so that the same rows reach the node. The first step has only the
    constraints of the model, and the second one adds these.

    Raises Unprocessable for a node without a threshold or a threshold that is not finite, and what `open_for` raises.
    """
    wishes, place = held_threshold(model_file(model).tree, node, threshold)
    with transaction.atomic():
        bench = open_for(owner=owner, model=model)
        places = {wish.split(None, 2)[1] for wish in wishes}
        held_wishes = [
            w for w in current_wishes(bench) if not (w.startswith(("ask ", "leaf ")) and w.split(None, 2)[1] in places)
        ]
        edit(bench, wishes=[*held_wishes, *wishes])
    return bench, place


def held_threshold(tree: Tree, node: int, threshold: float) -> tuple[list[str], str]:
    """Return the constraints that fix the splits from the root to a node, with another threshold there, and the node's place.

    Raises Unprocessable for a node without a threshold or a threshold that is not finite.
    """
    split = tree.nodes[node].split if 0 <= node < len(tree.nodes) else None
    if split is None or split.cut is None or not math.isfinite(threshold):
        raise Unprocessable(
            "This question has no threshold to hold, or the threshold is not a number. Choose a question such as “age ≤ 30?”."
        )
    wishes = []
    for above in tree.path_to(node)[:-1]:
        asked = tree.nodes[above].split
        assert asked is not None
        wishes.append(f"ask {place_of(tree, above)} {asked.wish(tree.schema)}")
    place = place_of(tree, node)
    return [*wishes, f"ask {place} {tree.schema[split.cut[0]].name} <= {float(threshold)!r}"], place


def place_of(tree: Tree, node: int) -> str:
    """Return the place of a node as constraints name it: the answers on its path, such as "yn", or "root"."""
    steps = itertools.pairwise(tree.path_to(node))
    return "".join("y" if tree.nodes[at].left == below else "n" for at, below in steps) or "root"
