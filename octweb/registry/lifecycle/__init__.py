"""Change models and say who may: access, actions, names, audit trail, serving history."""
