"""What the contract asks for: windows, networks, losses, scores."""
