"""Models as a service: HTTP, an OpenAPI description, and a page for each task; `fewer serve` starts it."""
