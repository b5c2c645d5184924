"""Workbenches: a tree is edited wish by wish, each with its proof and its price, and all good trees are looked at."""

from django.apps import AppConfig


class WorkbenchConfig(AppConfig):
    name = "octweb.workbench"
