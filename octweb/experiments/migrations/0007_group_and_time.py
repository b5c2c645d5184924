from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0006_list_indexes")]

    operations = [
        migrations.AddField(
            model_name="experiment",
            name="group",
            field=models.CharField(blank=True, max_length=1000),
        ),
        migrations.AddField(
            model_name="experiment",
            name="time",
            field=models.CharField(blank=True, max_length=1000),
        ),
    ]
