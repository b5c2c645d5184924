from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0007_group_and_time")]

    operations = [
        migrations.AddField(
            model_name="experiment",
            name="weight",
            field=models.CharField(blank=True, max_length=1000),
        ),
    ]
