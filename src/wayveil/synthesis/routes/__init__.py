"""Graphs of streets and grid cells, and routes on them."""
