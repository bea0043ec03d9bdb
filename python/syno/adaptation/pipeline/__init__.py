"""`syno.adapt`: operators for the layers of a whole trained network, chosen and fine-tuned."""
