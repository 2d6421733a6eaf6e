"""Weights of candidate trips, fitted to the noisy answers."""
