
import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('datasets', '0007_counts'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='SourceCount',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created', models.DateTimeField(auto_now_add=True)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('succeeded', 'Succeeded'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], db_index=True, default='queued', max_length=20)),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('worker', models.CharField(blank=True, max_length=100)),
                ('lease_until', models.DateTimeField(blank=True, null=True)),
                ('heartbeat_at', models.DateTimeField(blank=True, null=True)),
                ('cancel_requested', models.BooleanField(default=False)),
                ('started', models.DateTimeField(blank=True, null=True)),
                ('finished', models.DateTimeField(blank=True, null=True)),
                ('error', models.TextField(blank=True)),
                ('log', models.TextField(blank=True)),
                ('progress', models.JSONField(default=dict)),
                ('summary', models.JSONField(default=dict)),
                ('source', models.CharField(max_length=50)),
                ('table', models.CharField(blank=True, max_length=500)),
                ('query', models.TextField(blank=True)),
                ('name', models.CharField(max_length=200)),
                ('target', models.CharField(max_length=1000)),
                ('depth', models.PositiveIntegerField(default=3)),
                ('bins', models.PositiveIntegerField(default=5)),
                ('scheme', models.CharField(max_length=40)),
                ('folds', models.PositiveIntegerField(default=0)),
                ('key', models.CharField(blank=True, max_length=1000)),
                ('reading', models.JSONField(default=dict)),
                ('options', models.JSONField(default=dict)),
                ('dataset', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='source_count', to='datasets.dataset')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'count',
                'ordering': ['-created', '-id'],
                'permissions': [('use_sources', 'Can count the sources of the settings')],
                'abstract': False,
                'indexes': [models.Index(fields=['status', 'lease_until'], name='sources_sou_status_a4de1f_idx')],
            },
        ),
    ]
