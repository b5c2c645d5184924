"""Signals about served models; separate, so that receivers import nothing else."""

from django.dispatch import Signal

# sent when an alarm is found, and then weekly; sender: Alarm; arguments: model, open alarms to report
alarmed = Signal()
