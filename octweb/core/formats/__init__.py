"""How dates are written where Django writes them by itself, as in the administration: like the pages."""
