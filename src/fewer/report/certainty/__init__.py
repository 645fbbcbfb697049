"""How far figures can be trusted: test units, intervals over them, and which differences are real."""
