"""Remove the digests of training rows from stored models.

The new SHA-256 of each is recorded in the chain.
"""

import hashlib
import json

from django.db import migrations
from django.utils import timezone

from octweb.audit import chain
from trainer.tree.document import ROW_DIGESTS, without_row_digests


def sha256_of(text):
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def remove_row_digests(apps, schema_editor):
    models = apps.get_model("registry", "TreeModel").objects
    with_digests = models.filter(document__contains=f'"{ROW_DIGESTS}"').values_list("pk", flat=True)
    for pk in list(with_digests):
        model = models.select_related("family").get(pk=pk)
        try:
            document = json.loads(model.document)
        except ValueError:  # the application reports this model as damaged
            continue
        if ROW_DIGESTS not in document:
            continue
        text = json.dumps(without_row_digests(document), ensure_ascii=False, separators=(",", ":"))
        # somebody changed the document outside octweb, so the model must stay damaged
        if sha256_of(model.document) != model.sha256:
            models.filter(pk=pk).update(document=text)
            continue
        models.filter(pk=pk).update(document=text, sha256=sha256_of(text))
        add_record(apps, model, {"sha256_before": model.sha256, "sha256": sha256_of(text)})


def add_record(apps, model, details):
    head, _ = apps.get_model("audit", "Head").objects.get_or_create(pk=1)
    now = timezone.now()
    record = {
        "number": head.records + 1, "at": chain.moment(now), "by": "", "what": "digests removed", "subject": "model",
        "subject_id": str(model.pk), "name": f"{model.family.name} version {model.version}"[:320], "details": details,
        "before": head.digest,
    }  # fmt: skip
    digest = chain.digest(record)
    apps.get_model("audit", "Record").objects.create(**record | {"at": now, "subject_id": model.pk, "digest": digest})
    head.records += 1
    head.digest = digest
    head.save()


class Migration(migrations.Migration):
    dependencies = [("registry", "0007_ignored"), ("audit", "0001_initial")]
    operations = [migrations.RunPython(remove_row_digests, migrations.RunPython.noop)]
