"""Cell-free massive MIMO: which access points should serve a phone, from three measurements instead of all."""
