"""Spectral efficiency of user-centric cell-free massive MIMO."""
