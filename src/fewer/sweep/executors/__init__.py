"""Where units run: inline, in processes, on Ray."""
