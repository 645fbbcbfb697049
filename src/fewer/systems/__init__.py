"""One folder for each field, and everything about it. What a field's library offers beside its task is named in it."""
