"""Input and output: readers of private data, writers, road maps, and safe output files."""
