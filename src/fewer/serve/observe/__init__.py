"""What an operator sees: figures for Prometheus, and a line of log for every request."""
