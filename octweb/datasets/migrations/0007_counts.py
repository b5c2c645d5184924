
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('datasets', '0006_list_indexes'),
    ]

    operations = [
        migrations.AddField(
            model_name='dataset',
            name='counts',
            field=models.FileField(blank=True, upload_to='counts/%Y/%m/'),
        ),
        migrations.AddField(
            model_name='dataset',
            name='origin',
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name='upload',
            name='origin',
            field=models.JSONField(blank=True, default=dict),
        ),
    ]
