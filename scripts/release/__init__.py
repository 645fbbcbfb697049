"""What a release needs beside the tests: wheels, lower bounds, faults, mutants."""
