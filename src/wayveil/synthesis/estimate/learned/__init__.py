"""The learned estimator: a small network, trained on simulated cities only, that corrects the Bayesian estimate."""
