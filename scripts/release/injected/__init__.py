"""Faults put into a short training on purpose, each in a fork of a process that has imported everything."""
