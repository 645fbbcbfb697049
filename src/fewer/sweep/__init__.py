"""Grids of trainings: described in one file, run in processes or on a Ray cluster, ended at any moment and gone on."""
