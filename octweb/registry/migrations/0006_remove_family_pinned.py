"""Remove the pinned version of a family.

A separate migration, since PostgreSQL cannot alter a table with pending row changes.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("registry", "0005_served_since")]

    operations = [migrations.RemoveField(model_name="family", name="pinned")]
