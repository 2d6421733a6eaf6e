"""Obeying rules: steering routes, exchanging departures, new times, gradient descent and repair."""
