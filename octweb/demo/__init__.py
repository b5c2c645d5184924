"""The public demo (OCTWEB_DEMO=1): a temporary account for a day with small limits."""
