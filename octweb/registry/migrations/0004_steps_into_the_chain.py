"""Add earlier uploads, review steps and shares to the chain, in order."""

from django.db import migrations

from octweb.audit import chain

SINCE = "recorded before there was a chain"


def steps(apps):
    """Yield uploads, review steps and shares as (time, user, what, thing, name, details)."""
    for dataset in apps.get_model("datasets", "Dataset").objects.select_related("owner"):
        details = {"file": dataset.source_name, "sha256": dataset.sha256, "rows": dataset.rows}
        yield dataset.created, dataset.owner, "uploaded", ("dataset", dataset.pk), dataset.name, details
    for event in apps.get_model("registry", "ReviewEvent").objects.select_related("model__family", "by").order_by("at", "id"):
        model = event.model
        details = {"event": event.pk, "before": event.before, "after": event.after, "reason": event.reason}
        if not event.before:
            details |= {"method": model.method, "sha256": model.sha256}
        what = "trained" if not event.before else f"now {event.after}"
        yield event.at, event.by, what, ("model", model.pk), f"{model.family.name} version {model.version}", details
    for share in apps.get_model("registry", "Share").objects.select_related("model__family", "model__owner", "user"):
        model = share.model
        details = {"user": share.user.username, "level": share.level}
        yield share.at, model.owner, "shared", ("model", model.pk), f"{model.family.name} version {model.version}", details


def into_the_chain(apps, schema_editor):
    record, head = apps.get_model("audit", "Record"), apps.get_model("audit", "Head")
    before, number = chain.START, 0
    if record.objects.exists():
        return
    for at, by, what, (subject, pk), name, details in sorted(steps(apps), key=lambda one: one[0]):
        number += 1
        kept = {
            "number": number, "at": chain.moment(at), "by": by.username if by else "", "what": what, "subject": subject,
            "subject_id": str(pk), "name": name[:320], "details": details | {"note": SINCE}, "before": before,
        }
        before = chain.digest(kept)
        record.objects.create(**kept | {"at": at, "subject_id": pk, "digest": before})
    if number:
        head.objects.create(pk=1, records=number, digest=before)


class Migration(migrations.Migration):
    dependencies = [("registry", "0003_public_names"), ("audit", "0001_initial"), ("datasets", "0005_reading")]
    operations = [migrations.RunPython(into_the_chain, migrations.RunPython.noop)]
