"""The paper's three experiments, each a function that computes rows and a function that draws them."""
