"""Networks that choose access points."""
