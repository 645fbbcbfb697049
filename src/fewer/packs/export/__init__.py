"""Programs for others: C99 and ONNX."""

__all__ = ["FORMS"]

FORMS = ("c", "onnx")
