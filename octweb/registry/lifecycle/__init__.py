"""Change models: access, actions, names, audit trail, serving history."""
