from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("batch", "0003_change_and_cost"),
    ]

    operations = [
        migrations.AddField(
            model_name="batchprediction",
            name="least",
            field=models.CharField(
                choices=[("columns", "Fewest columns first"), ("total", "Smallest total")],
                default="columns",
                max_length=10,
            ),
        ),
    ]
