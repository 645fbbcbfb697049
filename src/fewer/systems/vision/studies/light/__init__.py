"""How light a robust network can be: recipes, rivals, the whole attack suite, features removed one by one."""
