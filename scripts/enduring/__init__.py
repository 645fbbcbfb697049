"""Clients that go on while workers are killed and packs reloaded."""
