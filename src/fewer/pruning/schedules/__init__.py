"""When weights go: gradually, dropped and grown, or in lottery rounds."""
