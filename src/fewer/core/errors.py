"""The one error that is the user's to mend, and the one warning that is theirs to know."""

__all__ = ["Notice", "UserError"]


class UserError(ValueError):
    """Wrong input: one line that says what was given, what was expected and what to do.

    The command line prints the line and exits with 2; library users catch a ValueError.
    """

    def __init__(self, given: str, expected: str, cure: str = "") -> None:
        self.given, self.expected, self.cure = given, expected, cure
        line = f"{given}; expected {expected}" + (f"; {cure}" if cure else "")
        super().__init__(" ".join(line.split()))


class Notice(UserWarning):
    """What was done with the user's input: right, but not what they might think. The command line prints the line."""
