"""The public demo (OCTWEB_DEMO=1): accounts for a day with small limits."""
