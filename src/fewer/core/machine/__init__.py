"""What a result depends on beside its settings: versions, memory."""
