"""The one error that is the user's to mend."""

__all__ = ["UserError"]


class UserError(ValueError):
    """Wrong input: one line that says what was given, what was expected and what to do.

    The command line prints the line and exits with 2; library users catch a ValueError.
    """

    def __init__(self, given: str, expected: str, cure: str = "") -> None:
        self.given, self.expected, self.cure = given, expected, cure
        line = f"{given}; expected {expected}" + (f"; {cure}" if cure else "")
        super().__init__(" ".join(line.split()))
