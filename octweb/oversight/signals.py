"""Define the signal of due reviews, in a module that imports nothing else."""

from django.dispatch import Signal

# sent two weeks before a review, on its day, and weekly afterwards; sender: Oversight; arguments: model, review_on
review_due = Signal()
