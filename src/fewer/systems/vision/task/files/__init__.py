"""Images as people keep them."""
