"""The errors of a document's files and of its key."""

from __future__ import annotations

from airmirror.errors import AirmirrorError


class ReportNotWritten(AirmirrorError, bad_input=True):
    """A file of a report that could not be written. ``done``: what was carried out all the same; empty: nothing."""

    file: str
    reason: str
    done: str = ""

    def __str__(self) -> str:
        again = "; what is done is not done again" if self.done else ""
        way_out = f"give another place (--write, or the DIRECTORY of fetch){again}"
        said = f"the report can't be written to {self.file}: {self.reason}; {way_out}"
        return f"{self.done} But {said}" if self.done else said


class BadKey(AirmirrorError, bad_input=True):
    """A file without the Ed25519 key that is needed."""

    file: str
    reason: str
    says = (
        "key file {0.file}: {0.reason}; `openssl genpkey -algorithm ed25519 -out key.pem` makes a private key, "
        "`openssl pkey -in key.pem -pubout -out public.pem` writes its public key"
    )


class NoReport(AirmirrorError, bad_input=True):
    """A file that can't be read, or is no report."""

    file: str
    reason: str
    says = "{0.file} is no report: {0.reason}; give the .json file of a report"
