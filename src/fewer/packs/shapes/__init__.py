"""The shape of everything in a program, and what it takes to compute."""
