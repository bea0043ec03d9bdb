"""Chosen operators, trained in a network with several seeds, and what is done with the results."""
