"""What the contract asks for: logs, networks, losses, roll-outs."""
