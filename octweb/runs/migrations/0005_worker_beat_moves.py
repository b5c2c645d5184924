"""Move the table of workers, with its rows, to `octweb.jobs`."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0004_repeat_a_request'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.AlterModelTable('WorkerBeat', 'jobs_workerbeat')],
            state_operations=[migrations.DeleteModel('WorkerBeat')],
        ),
    ]
