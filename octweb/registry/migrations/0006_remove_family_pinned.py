"""A version says itself whether it is served; in a step of its own, since PostgreSQL changes no table in which rows are pending."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("registry", "0005_served_since")]

    operations = [migrations.RemoveField(model_name="family", name="pinned")]
