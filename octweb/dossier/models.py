"""Store dossiers, which are jobs with a zip file, and their signing keys."""

from __future__ import annotations

from django.db import models

from octweb.jobs.models import Job

FOLDER = "dossiers"  # in the file store


class SigningKey(models.Model):
    """A signing key of this installation. Hosts without a key file sign with the newest. All keys are trusted."""

    fingerprint = models.CharField(max_length=64, unique=True)  # SHA-256 of the public key
    sealed = models.TextField()  # private key as PEM, encrypted with a key derived from OCTWEB_SECRET_KEY
    at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.fingerprint


class ModelDossier(Job):
    """A job that makes a dossier. A finished dossier never changes, and a new one is a new row."""

    TEAM_PATH = "model__team"
    TASK = "octweb.dossier.tasks.make_dossier"
    TIDY = "octweb.dossier.actions.tidy"
    ADVICE = "Make the dossier on a machine with more memory: manage.py dossier."

    model = models.ForeignKey("registry.TreeModel", on_delete=models.CASCADE, related_name="dossiers")
    said = models.JSONField(default=dict)  # name in `actions.TEXTS` → text by the owner
    groups = models.JSONField(default=list)  # columns whose groups the dossier compares
    site = models.CharField(max_length=500, blank=True)  # URL of this installation, as the browser sees it
    # the approval that this dossier belongs to, if its step made it
    approval = models.ForeignKey(
        "registry.ReviewEvent", null=True, blank=True, on_delete=models.CASCADE, related_name="dossiers"
    )
    sha256 = models.CharField(max_length=64, blank=True)  # of the file; dossiers of earlier versions have none
    file = models.FileField(max_length=200, blank=True)
    bytes = models.BigIntegerField(default=0)

    class Meta(Job.Meta):
        abstract = False
        verbose_name = "dossier"

    def __str__(self) -> str:
        return f"dossier of {self.model_id}"
