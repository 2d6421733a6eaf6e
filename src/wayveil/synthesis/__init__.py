"""Synthesis: from a release to trajectories, without any private data."""
