from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0009_status_index")]

    operations = [
        migrations.AddField(
            model_name="trainingrun",
            name="group",
            field=models.CharField(blank=True, max_length=1000),
        ),
        migrations.AddField(
            model_name="trainingrun",
            name="time",
            field=models.CharField(blank=True, max_length=1000),
        ),
    ]
