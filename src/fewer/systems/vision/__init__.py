"""Images and their classes: data, networks, and the task that every method works on."""
