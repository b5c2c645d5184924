"""Show workbenches, and the explorer of all good trees."""

from __future__ import annotations

import math
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST
from rest_framework.exceptions import APIException

from octweb.core.lists import narrowed, page_of
from octweb.core.methods import title_of
from octweb.core.problems import flatten
from octweb.jobs.queue import worker_seen
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from octweb.workbench import actions, agreement, alternatives, explore, page
from octweb.workbench.canvas import canvas
from octweb.workbench.models import StepKind, StepState, Workbench
from trainer.errors import ParameterError, TrainerError
from trainer.registry import editable_ids
from trainer.training.claims import read_claim
from trainer.tree.numbers import points_text

LIST_SORTS = {
    "used": ("last used", "-used"),
    "newest": ("newest first", "-created"),
    "name": ("name", "name"),
    "dataset": ("data set", "dataset__name"),
    "method": ("method", "method"),
}


def _bench(request: HttpRequest, pk: Any) -> Workbench:
    bench = Workbench.objects.select_related("dataset", "owner", "base__family").get_for(request, pk)
    if request.method == "POST":
        actions.wake_if_needed(bench)
    return bench


@login_required
@require_GET
def bench_list(request: HttpRequest) -> HttpResponse:
    benches = Workbench.objects.visible_to(request.user).select_related("dataset", "owner", "base__family")
    models = TreeModel.objects.changeable_by(request.user).filter(method__in=editable_ids()).exclude(dataset=None)
    fields = ("name", "dataset__name", "base__family__name", "method")
    benches, list_context = narrowed(benches, request.GET, fields=fields, sorts=LIST_SORTS)
    context = list_context | {
        "page": page_of(benches, request.GET),
        "models": models.select_related("family").defer("document")[:50],
        "methods": [title_of(name) for name in editable_ids()],
    }
    return render(request, "workbench/list.html", context)


@login_required
@require_POST
def bench_new(request: HttpRequest) -> HttpResponse:
    model = TreeModel.objects.select_related("family", "dataset").get_for(request, request.POST.get("model"))
    try:
        if request.POST.get("threshold"):
            return _holding(request, model)
        if request.POST.get("then") == "agreement":
            agreement.ask(model, request.user)
            return redirect("registry:detail", model.pk)
        bench = actions.open_for(owner=request.user, model=model)
    except (TrainerError, APIException) as error:
        messages.error(request, _error_text(error))
        return redirect("registry:detail", model.pk)
    if request.POST.get("then") == "good-trees":
        return redirect("workbench:explorer", bench.pk)
    return redirect(f"{reverse('workbench:detail', args=[bench.pk])}{_node_query(request, model)}")


def _node_query(request: HttpRequest, model: TreeModel) -> str:
    """Return the query that selects the node from which the workbench was opened, or "" without one."""
    node = request.POST.get("node", "")
    tree = model_file(model).tree
    is_node = node.isascii() and node.isdigit() and int(node) < len(tree.nodes)
    return f"?at={actions.place_of(tree, int(node))}" if is_node else ""


def _holding(request: HttpRequest, model: TreeModel) -> HttpResponse:
    """Open a workbench with the threshold that the user selected in the picture of a split."""
    try:
        node = int(request.POST.get("node", ""))
        threshold = float(request.POST["threshold"])
    except ValueError:
        # With these values, `open_holding` raises the same error as for a node without a threshold.
        node = -1
        threshold = math.nan
    bench, place = actions.open_holding(owner=request.user, model=model, node=node, threshold=threshold)
    return redirect(f"{reverse('workbench:detail', args=[bench.pk])}?at={place}")


@login_required
@require_POST
def bench_of_model(request: HttpRequest) -> HttpResponse:
    """Request the prices at a node of a model, which its page shows once they are computed."""
    model = TreeModel.objects.select_related("family", "dataset").get_for(request, request.POST.get("model"))
    node = request.POST.get("node", "0")
    try:
        alternatives.ask(model, request.user, int(node) if node.isdigit() else 0)
    except (TrainerError, APIException) as error:
        messages.error(request, _error_text(error))
    query = f"mode=tree&node={node if node.isdigit() else 0}&tab=alternatives"
    return redirect(f"{reverse('registry:detail', args=[model.pk])}?{query}")


@login_required
@require_GET
def bench_detail(request: HttpRequest, pk: Any) -> HttpResponse:
    return render(request, "workbench/detail.html", _context(request, _bench(request, pk)))


@login_required
@require_GET
def bench_live(request: HttpRequest, pk: Any) -> HttpResponse:
    """Render the part of the page that changes during a search."""
    return render(request, "workbench/_bench.html", _context(request, _bench(request, pk)))


def _context(request: HttpRequest, bench: Workbench, at: str = "") -> dict[str, Any]:
    step = actions.current(bench)
    shown_step = actions.last_tree(bench, step)
    at = at or request.GET.get("at", "") or "root"
    wishes = step.wishes if step else []
    tree = None if shown_step is None else page.step_tree(shown_step, wishes, at)
    place = page.find(tree, at)
    result = shown_step.result if shown_step else {}
    where = page.places_in_words(tree)
    wishes = page.wish_lines(step, actions.refused_wishes(bench), where)
    prices = page.price_lines(bench, shown_step, at)
    stalled = actions.is_stalled(bench)
    return {
        "bench": bench,
        "step": step,
        "shown": shown_step,
        "result": result,
        "tree": tree,
        "canvas": None if shown_step is None or tree is None else canvas(shown_step, tree),
        "legend": page.legend(tree),
        "place": place,
        "at": at,
        "where": where,
        "columns": [c["name"] for c in bench.dataset.columns if c.get("role") == "feature"],
        "classes": tree.classes if tree else (),
        "wrong": result["n"] - result["correct"] if result else None,
        "wishes": wishes,
        "contradicting": " and ".join(str(w["number"]) for w in wishes if w["conflict"]),
        "claim": None if shown_step is None else read_claim(page.model_of(shown_step).certificate),
        "price": page.price_of(result),
        "history": page.history(bench),
        "prices": prices,
        "spread": page.spread(shown_step, place),
        "ranks": page.rank_choices(place),
        "stalled": stalled,
        "working": not stalled and (bool(step and not step.is_finished) or bool(prices and prices["working"])),
        "can_undo": bool(step and step.parent),
        "can_redo": bench.steps.filter(
            kind=StepKind.COMPLETE, parent=bench.position, number__gt=bench.position
        ).exists(),
        "can_save": bool(step and step.state == StepState.DONE and step.document),
        "gap": page.gap_words(result),
        "workers_seen": worker_seen(),
    }


@login_required
@require_POST
def bench_edit(request: HttpRequest, pk: Any) -> HttpResponse:
    """Add or remove a constraint."""
    bench = _bench(request, pk)
    at = request.POST.get("at", "root")
    try:
        if request.POST.get("drop"):
            actions.edit(bench, drop=[request.POST["drop"]])
        else:
            wish = _wish(request.POST, at)
            same_place = [w for w in actions.current_wishes(bench) if w != wish and _replaces(wish, w)]
            actions.edit(bench, add=[wish], drop=same_place, reasons=_reasons(request.POST, wish))
    except (TrainerError, APIException, ValueError) as error:
        return _render_refusal(request, bench, at, error)
    return redirect(f"{reverse('workbench:detail', args=[bench.pk])}?at={at}")


FIELD_OF_VERB = {"threshold": "value", "depth": "height", "subset": "category", "together": "category"}


def _render_refusal(request: HttpRequest, bench: Workbench, at: str, error: Exception) -> HttpResponse:
    """Render the page with status 422, with the error beside its field and the typed text in the field."""
    context = _context(request, bench, at)
    place = context["place"]
    form = request.POST
    field = "reason" if form.get("label") else FIELD_OF_VERB.get(form.get("verb", ""), "wish")
    fields = {
        "wish": True,
        "value": place is not None and place.threshold,
        "height": place is not None and not place.is_leaf,
        "category": place is not None and place.categories,
        "reason": place is not None and place.is_leaf,
    }
    field = field if fields[field] else "wish"
    words = " ".join(error.errors.values()) if isinstance(error, ParameterError) else _error_text(error)
    typed = form.get("wish" if field == "wish" else "value", "")
    # A refresh would remove the reason from the page, so the page must not refresh itself.
    context |= {"refused_field": field, "refused": words, "typed": typed, "working": False}
    return render(request, "workbench/detail.html", context, status=422)


def _wish(form: Any, at: str) -> str:
    verb = form.get("verb", "wish")
    column = form.get("column", "")
    if verb == "threshold":
        return f"ask {at} {column} <= {form.get('value', '').strip()}"
    if verb == "column":
        return f"ask {at} {column}"
    if verb in ("forbid", "avoid"):
        return f"{verb} {at} {column}"
    if verb in ("subset", "together"):
        return _of_categories(verb, at, column, form.getlist("category"))
    if verb == "leaf":
        return f"leaf {at} {form.get('label', '')}".strip()
    if verb == "depth":
        return f"depth {at} {form.get('value', '').strip()}"
    wish = " ".join(form.get("wish", "").split("\n")).strip()
    if not wish:
        raise ValueError("The wish is empty. Choose place, change and column in the menus, or type a wish.")
    return wish.replace(" ≤ ", " <= ")


def _reasons(form: Any, wish: str) -> dict[str, str]:
    """Return the typed reason of a constraint, or {} without one.

    Raises ValueError if a leaf's class is set without a reason.
    """
    reason = form.get("reason", "").strip()
    if form.get("label") and not reason:
        raise ValueError("Say why this leaf is to have this class: the reason is kept with the wish in the model file.")
    return {wish: reason} if reason else {}


def _of_categories(verb: str, at: str, column: str, chosen: list[str]) -> str:
    """Return the constraint that splits off categories or keeps them together.

    Raises ValueError for an unusable choice.
    """
    if not chosen or (verb == "together" and len(chosen) < 2):
        raise ValueError(
            "Tick two or more categories." if verb == "together" else "Tick the categories that go to yes."
        )
    if len(chosen) > 1 and any("|" in name for name in chosen):
        raise ValueError(
            "A category with the sign | in its name cannot be chosen together with others. Choose it alone, or rename it in the file."
        )
    return f"{'ask' if verb == 'subset' else verb} {at} {column} in {'|'.join(chosen)}"


def _replaces(new: str, old: str) -> bool:
    """Return whether the new constraint replaces the old one.

    It does if both concern the same node, and both set its split or leaf, or both set its depth.
    """
    a = new.split(None, 2)
    b = old.split(None, 2)
    if len(a) < 2 or len(b) < 2 or a[1] != b[1]:
        return False
    return (a[0] in ("ask", "leaf") and b[0] in ("ask", "leaf")) or (a[0] == b[0] == "depth")


@login_required
@require_POST
def bench_move(request: HttpRequest, pk: Any) -> HttpResponse:
    """Undo, redo, go to a step of the history, stop the search, or continue a stalled one."""
    bench = _bench(request, pk)
    try:
        where = request.POST.get("to", "")
        if where == "undo":
            actions.undo(bench)
        elif where == "redo":
            actions.redo(bench)
        elif where == "stop":
            actions.stop(bench)
        elif where == "continue":
            pass  # `_bench` has queued the workbench
        else:
            actions.go_to(bench, int(where) if where.isdigit() else 0)
    except APIException as error:
        messages.error(request, _error_text(error))
    return redirect("workbench:detail", bench.pk)


@login_required
@require_POST
def bench_prices(request: HttpRequest, pk: Any) -> HttpResponse:
    bench = _bench(request, pk)
    at = request.POST.get("at", "root")
    step = actions.last_tree(bench, actions.current(bench))
    if step is not None:
        actions.ask(bench, StepKind.PRICES, wishes=step.wishes, request={"place": at[:20]})
    return redirect(f"{reverse('workbench:detail', args=[bench.pk])}?at={at[:20]}")


@login_required
@require_POST
def bench_unseen(request: HttpRequest, pk: Any) -> HttpResponse:
    bench = _bench(request, pk)
    try:
        counts = actions.look_at_unseen(bench)
        if counts is None:
            messages.info(
                request, "No rows were held out, so there are no unseen rows to check. Hold out a share in a new run."
            )
        else:
            rate = counts["base_rate"]
            base = f" Always “{rate['class']}” is right for {points_text(rate['share'])} %." if rate else ""
            times = "once" if bench.unseen_looks == 1 else f"{bench.unseen_looks} times"
            messages.info(
                request,
                f"{counts['correct']:,} of {counts['n']:,} unseen rows are right ({points_text(counts['accuracy'])} %).{base} "
                f"You have checked the unseen rows {times}. Each check weakens them as a test; the count goes into the report.",
            )
    except APIException as error:
        messages.error(request, _error_text(error))
    return redirect("workbench:detail", bench.pk)


@login_required
@require_POST
def bench_save(request: HttpRequest, pk: Any) -> HttpResponse:
    bench = _bench(request, pk)
    try:
        model = actions.save_version(bench, title=request.POST.get("title", ""))
    except (TrainerError, APIException) as error:
        messages.error(request, _error_text(error))
        return redirect("workbench:detail", bench.pk)
    messages.success(
        request,
        f"Saved as {model.family.name} version {model.version}, a draft until it is approved. "
        "Its proof follows within a minute, if it is not too long.",
    )
    return redirect("registry:detail", model.pk)


@login_required
def explorer(request: HttpRequest, pk: Any) -> HttpResponse:
    """Show all good trees: tolerance, filters, count, columns and trees. POST requests a new count."""
    bench = _bench(request, pk)
    if request.method == "POST":
        try:
            actions.ask_good_trees(bench, explore.request_of(request.POST, explore.default_tolerance(bench)))
        except ParameterError as error:
            return _explorer(request, bench, explore.form_values(request.POST) | explore.field_errors(error.errors))
        except (TrainerError, APIException) as error:
            messages.error(request, _error_text(error))
        return redirect("workbench:explorer", bench.pk)
    return _explorer(request, bench, {})


def _explorer(request: HttpRequest, bench: Workbench, more: dict[str, Any]) -> HttpResponse:
    """Render the page, or for htmx only the part that changes while trees are counted.

    `more` holds typed values and errors.
    """
    context = explore.context(bench) | {"bench": bench, "workers_seen": worker_seen()} | more
    context["stalled"] = actions.is_stalled(bench)
    context["pair"] = explore.pair(context.get("found") or {}, context.get("listed") or [], request.GET)
    name = "workbench/_explorer.html" if request.headers.get("HX-Request") else "workbench/explorer.html"
    return render(request, name, context)


def _error_text(error: Exception) -> str:
    if isinstance(error, APIException):
        return "; ".join(e["detail"] for e in flatten(error.detail))
    return " ".join(str(error).split())
