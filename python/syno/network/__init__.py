"""Networks: their layers, slots for operators, and networks by name."""
