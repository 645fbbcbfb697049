"""Verbs about the program itself: what its installation has, and how a shell completes its words."""
