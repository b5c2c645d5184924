"""Declaration of methods, progress reports, and the scope of claims."""
