"""How fast packs are against dense networks: which networks, which peers, at which sparsities, and where they meet."""
