"""The command line: one verb a file, no logic."""
