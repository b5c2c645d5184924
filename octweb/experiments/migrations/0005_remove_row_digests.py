"""Remove the digests of training rows from the stored documents."""

import json

from django.db import migrations

from trainer.tree.document import ROW_DIGESTS, without_row_digests


def remove_row_digests(apps, schema_editor):
    rows = apps.get_model("experiments", "Candidate").objects
    with_digests = rows.filter(document__contains=f'"{ROW_DIGESTS}"').values_list("pk", flat=True)
    for pk in list(with_digests):
        document = json.loads(rows.values_list("document", flat=True).get(pk=pk))
        text = json.dumps(without_row_digests(document), ensure_ascii=False)
        rows.filter(pk=pk).update(document=text)


class Migration(migrations.Migration):
    dependencies = [("experiments", "0004_gave_way")]
    operations = [migrations.RunPython(remove_row_digests, migrations.RunPython.noop)]
