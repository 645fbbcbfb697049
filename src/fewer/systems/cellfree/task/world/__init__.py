"""Where access points stand and how they are heard."""
