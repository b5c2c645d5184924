"""Show the review of a model: checklist, differences and steps."""
