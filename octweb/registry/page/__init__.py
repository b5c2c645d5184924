"""Show a model: list, canvas, inspector, modes and downloads.

Modes are listed in `modes.MODES`, tabs of the inspector in `tabs.TABS`. Each has a name, a template, a function for its
context, and a condition for showing it. Other apps add modes with `mode.register_mode`, and tabs with
`tab.register_tab`.
"""
