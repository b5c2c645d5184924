"""Django app of jobs: the queue, workers and their child processes."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "octweb.jobs"
