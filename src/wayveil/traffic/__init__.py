"""Traffic tables for planners, from a release and synthetic data: flows between zones, streets, lengths, times."""
