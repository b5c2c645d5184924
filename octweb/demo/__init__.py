"""The public demo (OCTWEB_DEMO=1): one-day accounts with small limits."""
