"""Define signals about served models, in a module that imports nothing else."""

from django.dispatch import Signal

# sent when an alarm is found, and then weekly; sender: Alarm; arguments: model, open alarms to report
alarmed = Signal()
