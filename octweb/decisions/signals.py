"""Define signals about recorded decisions, in a module that imports nothing else.

Both are sent in the transaction of the change, while it holds the head of the chain.
"""

from django.dispatch import Signal

outcomes_recorded = Signal()  # arguments: labels, a mapping from the id of a decision to the class that came true
decisions_erased = Signal()  # arguments: decisions, their ids or a queryset of these
