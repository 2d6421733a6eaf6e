"""One module for each method; `wayveil.baselines.load` imports them by name."""
