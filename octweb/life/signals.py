"""Signals about served models; separate, so that receivers import nothing else."""

from django.dispatch import Signal

alarmed = Signal()  # sender: Alarm; arguments: model, open alarms to report. Sent when found and then weekly
