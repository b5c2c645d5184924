"""List the changes and the stated risks over the versions of a model, for its dossier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Q

from octweb.dossier.models import ModelDossier
from octweb.dossier.texts import TEXTS
from octweb.jobs.models import RunStatus
from octweb.registry.document.model_files import is_damaged, model_file
from octweb.registry.models import State, TreeModel
from trainer.errors import list_names
from trainer.tree.file import ModelFile

LOGGED = ("risks", "weakness")  # texts whose changes the log of risks lists
MAX_VERSIONS = 50  # the newest ones


def versions_until(model: TreeModel) -> list[TreeModel]:
    """Return the earlier versions of the name that were approved once, and this one, oldest first.

    Readers of this version may not know of drafts, so they are left out.
    """
    approved = TreeModel.objects.filter(family=model.family_id, version__lt=model.version)
    approved = approved.filter(Q(events__after=State.APPROVED)).distinct().select_related("owner", "dataset")
    return [*list(approved.order_by("-version")[: MAX_VERSIONS - 1])[::-1], model]


def change_log(models: Sequence[TreeModel]) -> list[dict[str, Any]]:
    """Return version, dates and changes of each version against the one before it."""
    log = []
    before: TreeModel | None = None
    for model in models:
        events = list(model.events.all())
        approved = next((e.at for e in events if e.after == State.APPROVED), None)
        ended = next((e for e in events if e.after == State.RETIRED), None)
        log.append(
            {
                "version": model.version,
                "trained": model.created.date().isoformat(),
                "by": model.owner.get_username(),
                "approved": "" if approved is None else approved.date().isoformat(),
                "ended": "" if ended is None else f"{ended.at.date().isoformat()} {ended.reason}".strip(),
                "changes": _changes(before, model),
            }
        )
        before = model
    return log


def _changes(before: TreeModel | None, model: TreeModel) -> list[str]:
    """Return in words what differs from the version before, or what the first version is."""
    if is_damaged(model) or (before is not None and is_damaged(before)):
        return ["not known: a stored model file is damaged"]
    after = model_file(model)
    if before is None:
        return [f"method {after.method}, {after.tree.n_leaves} leaves"]
    earlier = model_file(before)
    words = [
        f"{name} {old} to {new}"
        for name, old, new in (
            ("method", earlier.method, after.method),
            ("leaves", earlier.tree.n_leaves, after.tree.n_leaves),
            ("data set", _data_of(before), _data_of(model)),
        )
        if old != new
    ]
    words += _changed_settings(earlier, after)
    old_columns, new_columns = ({file.tree.schema[j].name for j in file.tree.used_columns} for file in (earlier, after))
    if added := sorted(new_columns - old_columns):
        words.append(f"also asks {list_names(added)}")
    if removed := sorted(old_columns - new_columns):
        words.append(f"no longer asks {list_names(removed)}")
    if not words:
        words.append("other questions or counts" if before.sha256 != model.sha256 else "none")
    return words


def _changed_settings(before: ModelFile, after: ModelFile) -> list[str]:
    names = sorted({*before.parameters, *after.parameters})
    changed = [(n, before.parameters.get(n), after.parameters.get(n)) for n in names]
    return [f"{name} {old} to {new}" for name, old, new in changed if old != new]


def _data_of(model: TreeModel) -> str:
    return (
        "removed"
        if model.dataset is None
        else f"{model.dataset.name} ({model.dataset.rows:,} rows, {model.dataset.sha256[:12]})"
    )


def risk_log(models: Sequence[TreeModel], job: ModelDossier) -> list[dict[str, Any]]:
    """Return each change of the stated risks and weaknesses over the dossiers of these versions, oldest first.

    `job` is the dossier that is being made.
    """
    version = {model.pk: model.version for model in models}
    dossiers = ModelDossier.objects.filter(Q(status=RunStatus.SUCCEEDED) | Q(pk=job.pk), model__in=version)
    stated = dict.fromkeys(LOGGED, "")
    log = []
    for model_id, created, texts in dossiers.order_by("created").values_list("model", "created", "said"):
        for name in LOGGED:
            text = texts.get(name, "")
            if text != stated[name]:
                stated[name] = text
                log.append(
                    {
                        "since": created.date().isoformat(),
                        "version": version[model_id],
                        "about": TEXTS[name],
                        "text": text,
                    }
                )
    return log
