from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("life", "0003_outcomes")]

    operations = [
        migrations.AddField(
            model_name="watching", name="leaf_rows", field=models.JSONField(blank=True, null=True)
        ),
    ]
