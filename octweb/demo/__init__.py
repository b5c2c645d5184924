"""The public demo (OCTWEB_DEMO=1): an account of one's own for a day, small limits, nothing to sign up for."""
