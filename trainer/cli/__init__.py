"""The commands of the library: `python -m trainer COMMAND`, without a database and without Django.

Each command is a module with `HELP`, `add_arguments(parser)` and `run(options)`, which prints and returns the exit status.
`octweb COMMAND` and `manage.py COMMAND` run the same functions.
"""

COMMANDS = ("checker", "contract", "prune", "recount", "rules", "verify")
