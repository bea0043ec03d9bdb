"""Training of given operators in a network with several seeds, and its results."""
