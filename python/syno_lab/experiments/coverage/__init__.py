"""Which networks of torchvision and timm are compiled, and why others are not."""
