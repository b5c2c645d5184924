"""Define the commands of the library, `python -m trainer COMMAND`.

They need neither a database nor Django. Each command is a module with `HELP`, `add_arguments(parser)` and
`run(options)`, which prints and returns the exit status. `octweb COMMAND` and `manage.py COMMAND` run the same
functions.
"""

COMMANDS = (
    "checker",
    "complete",
    "contract",
    "convert",
    "count",
    "edit",
    "evaluate",
    "explain",
    "export",
    "frontier",
    "good-trees",
    "inspect",
    "methods",
    "pareto",
    "predict",
    "prune",
    "recount",
    "rules",
    "samples",
    "stability",
    "train",
    "verify",
    "warm",
)
