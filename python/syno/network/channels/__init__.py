"""Channels of a network that can be removed together, and networks without some of them."""
