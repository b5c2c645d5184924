"""Review models in Django's admin."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import Script
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import date
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from rest_framework.exceptions import APIException

from octweb.core.faults import DamagedDocument
from octweb.core.problems import flatten
from octweb.core.templatetags.octweb import percent
from octweb.registry.document.claims import claim_badges
from octweb.registry.document.model_files import model_file
from octweb.registry.document.rows import absence_words, check_claim
from octweb.registry.hooks import open_points
from octweb.registry.lifecycle import actions
from octweb.registry.models import Family, ReviewEvent, TreeModel
from trainer.errors import TrainerError
from trainer.tree.describe import rules_text
from trainer.tree.numbers import points_text
from trainer.tree.render.outline import tree_outline


def _or_damage(show: Callable[[Any, TreeModel], Any]) -> Callable[[Any, TreeModel], Any]:
    """Decorate a column so that it shows the error if the document is damaged."""

    @wraps(show)
    def shown(self: Any, model: TreeModel) -> Any:
        try:
            return show(self, model)
        except DamagedDocument as error:
            return str(error)

    return shown


class ReadOnly(admin.ModelAdmin):
    """Admin without adding, changing and deleting. Only its actions change models."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class Events(admin.TabularInline):
    """Inline with the history of a model, read-only."""

    model = ReviewEvent
    extra = 0
    can_delete = False
    fields = readonly_fields = ("at", "by", "before", "after", "reason")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(TreeModel)
class TreeModelAdmin(ReadOnly):
    """Admin of models, with actions for reviewers."""

    list_display = (
        "title", "named", "owner", "claim", "state", "served_since", "unseen", "training", "leaves", "trained",
    )  # fmt: skip
    list_filter = ("state", "method", "status", "guarantee")
    search_fields = ("title", "family__name", "owner__username")
    list_select_related = ("family", "owner")
    inlines = (Events,)
    actions = (
        "approve_chosen", "approve_only_chosen", "serve_chosen", "stop_serving_chosen", "ask_back_chosen", "reject_chosen",
        "retire_chosen",
    )  # fmt: skip
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "title",
                    "family",
                    "version",
                    "owner",
                    "dataset",
                    "state",
                    "served_since",
                    "requested",
                    "created",
                )
            },
        ),
        ("Tree", {"fields": ("picture", "tree", "rules", "difference")}),
        (
            "What is claimed",
            {"fields": ("claim", "objective", "bound", "gap", "status", "checked_again", "certificate")},
        ),
        ("Quality and size", {"fields": ("unseen_accuracy", "train_accuracy", "leaves", "depth", "method")}),
        ("Document", {"fields": ("fingerprint", "sha256", "document_text")}),
    )
    readonly_fields = tuple(name for _, part in fieldsets for name in part["fields"])

    class Media:
        css: ClassVar = {"all": ["font.css", "tokens.css", "admin.css"]}
        js = ("vendor/plotly.min.js", Script("figures.js", type="module"), Script("admin.js", type="module"))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_active and request.user.is_staff)

    has_module_permission = has_view_permission

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        return super().get_queryset(request).select_related("family", "owner", "dataset")

    @admin.display(description="name", ordering="family__name")
    def named(self, model: TreeModel) -> str:
        return f"{model.family.name} (version\u00a0{model.version})"

    @admin.display(description="unseen rows", ordering="unseen_accuracy")
    def unseen(self, model: TreeModel) -> str:
        return percent(model.unseen_accuracy)

    @admin.display(description="training rows", ordering="train_accuracy")
    def training(self, model: TreeModel) -> str:
        return percent(model.train_accuracy)

    @admin.display(ordering="created")
    def trained(self, model: TreeModel) -> str:
        return date(localtime(model.created), "j M Y")

    @admin.display(description="what is claimed")
    def claim(self, model: TreeModel) -> str:
        return ", ".join(claim.words for claim in claim_badges(model))

    @admin.display(description="asked for approval")
    def requested(self, model: TreeModel) -> str:
        event = model.events.filter(after="in_review").exclude(before="in_review").select_related("by").last()
        if event is None:
            return "never"
        note = f": {event.reason}" if event.reason else ", without a note"
        return f"{event.at:%d %B %Y, %H:%M} by {event.by or 'a removed account'}{note}"

    @admin.display(description="checked again from the file")
    @_or_damage
    def checked_again(self, model: TreeModel) -> str:
        check = check_claim(model)
        return check.sentence if check else f"not possible: {absence_words(model)}"

    @admin.display(description="picture")
    def picture(self, model: TreeModel) -> SafeString:
        return format_html(
            '<div class="figure" data-name="tree" data-figure-url="{}" data-page="{}" aria-label="The tree; the list below says the same."></div>',
            reverse("api-model-tree-figure", args=[model.pk]),
            reverse("registry:detail", args=[model.pk]),
        )

    @admin.display(description="tree as a list")
    @_or_damage
    def tree(self, model: TreeModel) -> SafeString:
        outline = _outline(tree_outline(model_file(model).tree), "")
        return format_html("<details><summary>show</summary><ul>{}</ul></details>", outline)

    @admin.display(description="rules, every digit")
    @_or_damage
    def rules(self, model: TreeModel) -> SafeString:
        rules = rules_text(model_file(model).tree, model_file(model).certificate)
        return format_html("<details><summary>show</summary><pre>{}</pre></details>", rules)

    @admin.display(description="difference to the version now served")
    @_or_damage
    def difference(self, model: TreeModel) -> SafeString | str:
        served = actions.served_version(model.family)
        if served is None:
            return "no version of this name is served"
        if served.pk == model.pk:
            return "this version is the one that is served"
        lines = list(
            difflib.unified_diff(
                rules_text(model_file(served).tree, model_file(served).certificate).splitlines(),
                rules_text(model_file(model).tree, model_file(model).certificate).splitlines(),
                f"version {served.version}, served",
                f"version {model.version}",
                lineterm="",
            )
        )
        return format_html("<pre>{}</pre>", "\n".join(lines) or "the two trees ask the same questions")

    @admin.display(description="certificate")
    @_or_damage
    def certificate(self, model: TreeModel) -> SafeString:
        rows = sorted(model_file(model).certificate.items())
        return format_html("<pre>{}</pre>", "\n".join(f"{k}: {json.dumps(v, ensure_ascii=False)}" for k, v in rows))

    @admin.display(description="fingerprint of the training rows")
    @_or_damage
    def fingerprint(self, model: TreeModel) -> str:
        return model_file(model).fingerprint or "none"

    @admin.display(description="document")
    def document_text(self, model: TreeModel) -> SafeString:
        return format_html("<details><summary>show</summary><pre>{}</pre></details>", model.document)

    @admin.action(description="Approve and serve under its name")
    def approve_chosen(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse | None:
        return self._approve(request, queryset, True, "approved and served")

    @admin.action(description="Approve only")
    def approve_only_chosen(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse | None:
        return self._approve(request, queryset, False, "approved")

    def _approve(self, request: HttpRequest, queryset: QuerySet, publish: bool, outcome: str) -> HttpResponse | None:
        """Approve the selected models. If a checklist has open items, ask for a reason first."""
        step = partial(actions.approve, publish=publish)
        if any(open_points(m) for m in queryset if "approve" in actions.possible_steps(m, request.user)):
            words = ("Approve models", "Their checklists have open points", "Say why you approve them all the same")
            return self._with_reason(request, queryset, step, outcome, words)
        self._each(request, queryset, step, outcome)
        return None

    @admin.action(description="Serve under its name")
    def serve_chosen(self, request: HttpRequest, queryset: QuerySet) -> None:
        self._each(request, queryset, actions.publish, "served")

    @admin.action(description="Stop serving")
    def stop_serving_chosen(self, request: HttpRequest, queryset: QuerySet) -> None:
        self._each(request, queryset, actions.stop_serving, "no longer served")

    @admin.action(description="Retire")
    def retire_chosen(self, request: HttpRequest, queryset: QuerySet) -> None:
        self._each(request, queryset, actions.retire, "retired")

    @admin.action(description="Ask back, with a note")
    def ask_back_chosen(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse:
        words = ("Ask back models", "These go back to their owners", "Say what is missing")
        return self._with_reason(request, queryset, actions.ask_back, "asked back", words)

    @admin.action(description="Reject, with a reason")
    def reject_chosen(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse:
        words = ("Reject models", "These are rejected", "Say why")
        return self._with_reason(request, queryset, actions.reject, "rejected", words)

    def _with_reason(
        self,
        request: HttpRequest,
        queryset: QuerySet,
        step: Callable[..., Any],
        outcome: str,
        words: tuple[str, str, str],
    ) -> HttpResponse:
        """Take the step with the submitted reason. Without one, show a form, which calls the same action again."""
        reason = request.POST.get("reason", "").strip()
        if "reason" in request.POST and reason:
            self._each(request, queryset, partial(step, reason=reason[:5000]), outcome)
            return redirect(request.get_full_path())
        context = {
            **self.admin_site.each_context(request),
            "title": words[0],
            "said": words[1],
            "question": words[2],
            "action": request.POST["action"],
            "models": queryset,
            "opts": self.model._meta,
            "missing": "reason" in request.POST,
        }
        return TemplateResponse(request, "admin/registry/treemodel/reason.html", context)

    def _each(self, request: HttpRequest, queryset: QuerySet, step: Callable[..., Any], outcome: str) -> None:
        for model in queryset:
            try:
                words = actions.describe_outcome(step(model, by=request.user), outcome)
                self.message_user(request, f"{model}: {words}.", messages.SUCCESS)
            except PermissionDenied as error:
                self.message_user(request, f"{model}: {error}", messages.ERROR)
            except APIException as error:
                self.message_user(request, "; ".join(e["detail"] for e in flatten(error.detail)), messages.ERROR)
            except TrainerError as error:
                self.message_user(request, f"{model}: {error}", messages.ERROR)


@admin.register(Family)
class FamilyAdmin(ReadOnly):
    """Admin of the names under which models are served."""

    list_display = ("name", "owner", "now_served")
    search_fields = ("name",)

    @admin.display(description="version now served")
    def now_served(self, family: Family) -> str:
        served = actions.served_version(family)
        return f"version {served.version}" if served else "none"


def _outline(node: dict[str, Any], answer: str) -> SafeString:
    words = f"{node['rule']}?" if "rule" in node else f"{node['label']}, {points_text(node['share'])} %"
    children = format_html_join("", "{}", ((_outline(c["node"], c["answer"]),) for c in node["children"]))
    inner = format_html("<ul>{}</ul>", children) if node["children"] else ""
    return format_html(
        "<li>{}<b>{}</b> <small>{}</small>{}</li>", f"{answer}: " if answer else "", words, node["counts"], inner
    )
