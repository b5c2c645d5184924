"""English; see `octweb.core.formats`."""
