"""One module for each verb, with `add` (arguments) and `run`."""
