"""What draws weather: the weather cache is void when a file here changes."""
