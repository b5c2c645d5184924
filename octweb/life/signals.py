"""Define signals about served models, in a module that imports nothing else."""

from django.dispatch import Signal

# sent when an alarm is found, and then weekly; sender: Alarm; arguments: model, open alarms to report
alarmed = Signal()

# sent before a look at a model, in its transaction; arguments: model, its locked Watching (saved afterwards), and the last
# day to count; receivers add counts of outcomes that are due
outcomes_due = Signal()
