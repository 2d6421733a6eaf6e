"""The foundation of all other packages: scopes, trajectories, grids, bins, and numerical functions on them."""
