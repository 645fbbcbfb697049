"""Programs on images as one call into C: what is done, how it lies in memory, and which part of a program."""
