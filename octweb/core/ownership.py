"""Restrict objects to their owners: users see their own, staff see all, others get 404."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.http import Http404

M = TypeVar("M", bound=models.Model)


class OwnedQuerySet(models.QuerySet):
    """Queryset of objects with an `owner`."""

    def visible_to(self, user: Any) -> OwnedQuerySet:
        """Return the objects that `user` may see, without soft-deleted ones."""
        return self.kept().owned_by(user)

    def owned_by(self, user: Any) -> OwnedQuerySet:
        """Return the objects of `user`, or all for staff. Soft-deleted ones are included."""
        if not user.is_authenticated:
            return self.none()
        return self.all() if user.is_staff else self.filter(owner=user)

    def kept(self) -> OwnedQuerySet:
        """Return the objects that are not soft-deleted."""
        return self.filter(deleted_at=None) if issubclass(self.model, Deletable) else self.all()

    def deleted_by(self, user: Any) -> OwnedQuerySet:
        """Return the soft-deleted objects that `user` may restore."""
        return self.filter(deleted_at__isnull=False).owned_by(user)

    def get_visible(self, user: Any, pk: Any) -> Any:
        """Return the object, or raise Http404.

        The error is the same if it does not exist and if `user` may not see it.
        """
        try:
            return self.visible_to(user).get(pk=pk)
        except (self.model.DoesNotExist, ValidationError, ValueError, TypeError) as error:
            raise Http404(
                f"There is no {self.model._meta.verbose_name} with this id, or it is not yours. Check the id."
            ) from error


class Owned(models.Model):
    """Base class of objects that belong to a user. The random id cannot be guessed."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created = models.DateTimeField(auto_now_add=True)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        abstract = True
        ordering = ["-created", "-id"]


# lists show undeleted rows, newest first: those of one owner or, for staff, of all
LIST_INDEXES = [
    models.Index(fields=["owner", "deleted_at", "-created", "-id"], name="%(class)s_of_owner"),
    models.Index(fields=["deleted_at", "-created", "-id"], name="%(class)s_of_all"),
]


class Deletable(Owned):
    """Base class of objects with soft deletion. They can be restored for some weeks and are then purged."""

    deleted_at = models.DateTimeField(null=True, blank=True, db_index=True)

    class Meta(Owned.Meta):
        abstract = True
        indexes = LIST_INDEXES

    @classmethod
    def back_within(cls) -> timedelta:
        """Return how long an object can be restored after its deletion."""
        return timedelta(days=30)
