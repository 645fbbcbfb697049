"""What the contract asks for: images, networks, losses."""
