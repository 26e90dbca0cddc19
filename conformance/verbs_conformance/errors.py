"""What a person can mend: files given to the suite that cannot be used."""


class BadProgram(Exception):
    """A program that cannot be run: the fault is the program's."""


class BadWaivers(Exception):
    """A waiver file that cannot be used: the fault is the file's."""
