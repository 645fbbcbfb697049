"""Engines: the same objectives trained one by one, in lock-step, or resumed to the bit."""
