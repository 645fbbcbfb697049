"""How agents of the control studies are trained and kept: scales, recipes, cohorts, curves, pieces."""
