"""Adopt the table of workers, which `octweb.runs` created."""

from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('runs', '0005_worker_beat_moves'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name='WorkerBeat',
                    fields=[
                        ('name', models.CharField(max_length=100, primary_key=True, serialize=False)),
                        ('seen_at', models.DateTimeField()),
                    ],
                ),
            ],
        ),
    ]
