"""Every way of pruning on every task."""
