"""Signals about models in use, for the applications above: three lines that load nothing."""

from django.dispatch import Signal

alarmed = Signal()  # sender: Alarm; model, alarms: those whose owner is to be told. Sent at the first alarm and weekly
