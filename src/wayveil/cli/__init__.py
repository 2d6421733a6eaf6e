"""The command line: one file per command, no logic.

Commands import what they run inside their functions, so that `wayveil --help` and each command load only what they
need: numpy, pyarrow and JAX take seconds to import.
"""
