"""Answer requests of the workbench: best trees under constraints, and good trees."""
