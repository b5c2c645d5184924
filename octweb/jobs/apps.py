"""Jobs: the queue, workers and their child processes, whatever the work is."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "octweb.jobs"
