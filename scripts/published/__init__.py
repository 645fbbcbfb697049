"""What is published of results/ and of the registries, page by page; `scripts/readme_tables.py` writes it all."""
