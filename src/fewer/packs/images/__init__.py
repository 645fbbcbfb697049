"""Programs on images made ready for one call into C: what is done, how it lies in memory, and which part of a program."""
