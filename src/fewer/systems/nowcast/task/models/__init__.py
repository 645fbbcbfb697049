"""Networks that forecast rain."""
