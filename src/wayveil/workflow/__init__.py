"""Whole workflows on files, for the command line and Python: measure, synthesize, run, demo."""
