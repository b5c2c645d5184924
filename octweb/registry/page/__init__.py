"""The model page: a canvas with the tree, an inspector for the chosen node, and further modes.

A mode is one entry of `modes.MODES`, a tab of the inspector one entry of `tabs.TABS`: a name, a template, the function that
gives it its context, and when it is shown. Nothing else has to know of it. Other apps add modes to `mode.register_mode`, tabs to `tab.register_tab`.
"""
