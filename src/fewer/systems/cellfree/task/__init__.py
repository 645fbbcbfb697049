"""What the contract asks for: phones, networks, losses."""
