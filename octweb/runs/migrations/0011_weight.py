from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0010_group_and_time")]

    operations = [
        migrations.AddField(
            model_name="trainingrun",
            name="weight",
            field=models.CharField(blank=True, max_length=1000),
        ),
    ]
