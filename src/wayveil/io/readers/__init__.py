"""Readers of private trajectories from files, folders and data frames."""
