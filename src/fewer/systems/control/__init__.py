"""Policies from logged data: BCQ, BC, TD3+BC and IQL, most of their weights removed before training."""
