"""Declare methods, report progress, and describe the scope of claims."""
