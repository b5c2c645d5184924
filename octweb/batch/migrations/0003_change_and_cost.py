from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("batch", "0002_explain_rows"),
    ]

    operations = [
        migrations.AddField(
            model_name="batchprediction",
            name="change",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name="batchprediction",
            name="cost",
            field=models.JSONField(blank=True, default=dict),
        ),
    ]
