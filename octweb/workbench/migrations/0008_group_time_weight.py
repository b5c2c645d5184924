from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workbench", "0007_list_indexes")]

    operations = [
        migrations.AddField(model_name="workbench", name=name, field=models.CharField(blank=True, max_length=1000))
        for name in ("group", "time", "weight")
    ]
