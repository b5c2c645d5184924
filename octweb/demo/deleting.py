"""Delete an account with all its rows and files."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.core.files.storage import Storage
from django.db import models, router, transaction
from django.db.models import ProtectedError
from django.db.models.deletion import Collector

from octweb.core import files
from octweb.demo.visits import owned_models


class _Whole(Collector):
    """Deletion collector that loads every row, because rows may name files."""

    def can_fast_delete(self, objs: Any, from_field: Any = None) -> bool:
        return False

    def stored(self) -> set[tuple[Storage, str]]:
        """Return the stored files of the collected rows."""
        return {
            (getattr(row, field.name).storage, getattr(row, field.name).name)
            for model, rows in self.data.items()
            for field in model._meta.concrete_fields
            if isinstance(field, models.FileField)
            for row in rows
            if getattr(row, field.name)
        }


def delete_all(user: Any) -> list[str]:
    """Delete the user and all dependent rows. Files are removed when the transaction commits.

    Return descriptions of objects that stay because others need them. In this case, the user stays as well.
    """
    with transaction.atomic():
        # a worker that renews its lease waits for this lock, and then finds its row gone
        for model in owned_models():
            list(model._default_manager.select_for_update().filter(owner=user).values_list("pk", flat=True))
        groups: list[Any] = [_rows(model, user) for model in _holding(user)]
        undeleted: list[str] = []
        while groups:
            left = []
            undeleted = []
            for rows in groups:
                try:
                    _delete(rows)
                except ProtectedError as error:  # other rows depend on these, so they are tried again later
                    left.append(rows)
                    undeleted.append(f"{rows.model._meta.verbose_name}: {str(error.args[0])[:200]}")
            if len(left) == len(groups):
                return undeleted
            groups = left
        _delete(type(user)._default_manager.filter(pk=user.pk))
    return []


def _holding(user: Any) -> list[type[models.Model]]:
    """Return every model with a cascading foreign key to the user."""
    return [
        relation.related_model
        for relation in user._meta.get_fields(include_hidden=True)
        if relation.auto_created and not relation.concrete and getattr(relation, "on_delete", None) is models.CASCADE
    ]


def _rows(model: Any, user: Any) -> Any:
    keys = [
        field
        for field in model._meta.concrete_fields
        if field.is_relation and field.related_model is type(user) and field.remote_field.on_delete is models.CASCADE
    ]
    condition = models.Q()
    for key in keys:
        condition |= models.Q(**{key.name: user})
    return model._base_manager.filter(condition)


def _delete(rows: Any) -> None:
    """Delete rows and their dependents. Raises ProtectedError."""
    collector = _Whole(using=router.db_for_write(rows.model), origin=rows)
    collector.collect(list(rows.all()))
    stored = collector.stored()
    with transaction.atomic():
        collector.delete()
    for storage, name in stored:
        transaction.on_commit(partial(files.remove, storage, name))
