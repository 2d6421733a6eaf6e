"""Writers of trajectories, to files that are complete or absent."""
