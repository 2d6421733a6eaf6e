"""Writers of trajectories. A file appears only when it is complete."""
