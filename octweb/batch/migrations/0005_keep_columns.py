from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("batch", "0004_least"),
    ]

    operations = [
        migrations.AddField(
            model_name="batchprediction",
            name="keep_columns",
            field=models.BooleanField(default=False),
        ),
    ]
