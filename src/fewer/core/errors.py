"""The one error that is the user's to mend, the kinds of it that somebody handles, and the one warning."""

__all__ = ["Busy", "Diverged", "MissingExtra", "NoFiles", "Notice", "UserError"]


class UserError(ValueError):
    """Wrong input: one line that says what was given, what was expected and what to do.

    The command line prints the line and exits with 2; library users catch a ValueError.
    """

    def __init__(self, given: str, expected: str, cure: str = "") -> None:
        self.given, self.expected, self.cure = given, expected, cure
        line = f"{given}; expected {expected}" + (f"; {cure}" if cure else "")
        super().__init__(" ".join(line.split()))

    def __reduce__(self) -> tuple[type["UserError"], tuple[str, str, str]]:
        """An error crosses to the process that waits for it; from its line alone it could not be made again."""
        return type(self), (self.given, self.expected, self.cure)


class Diverged(UserError):
    """A training whose weights are no longer finite: a sweep goes on with its other points."""


class Busy(UserError):
    """A folder that another process trains into: whoever knows that it is about to end waits."""


class MissingExtra(UserError):
    """A package that is not installed: what needs it can be left out, and the rest goes on."""


class NoFiles(UserError):
    """A folder without the files that were asked for, which may have others."""


class Notice(UserWarning):
    """What was done with the user's input: right, but not what they might think. The command line prints the line."""
