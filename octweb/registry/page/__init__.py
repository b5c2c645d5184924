"""Show a model: list, canvas, inspector, modes and downloads.

A mode is an entry of `modes.MODES`, a tab of the inspector one of `tabs.TABS`: a name, a template, the function of its context,
and the condition to show it. Other apps add modes with `mode.register_mode`, tabs with `tab.register_tab`.
"""
