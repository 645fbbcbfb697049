"""Programs for others: C99 and ONNX."""
