"""The small scope of the command-line tests, and how it is measured."""

SCOPE = """name = "small"
south = 30.0
west = -40.0
north = 30.04
east = -39.96
timezone = "UTC"
"""
MEASURE = (
    "--dataset", "rides", "--scope", "small.toml", "--epsilon", "1", "--unit", "trajectory", "-o", "x.release.json",
)  # fmt: skip
