"""Certificates for a test, made by the openssl tool: an authority, and what it signs."""

import subprocess
from pathlib import Path


def openssl(*args, stdin: str = ""):
    done = subprocess.run(["openssl", *map(str, args)], input=stdin, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Certificate:
    """The files of a certificate and its key."""

    def __init__(self, folder: Path, name: str):
        self.cert = Path(folder) / (name + ".crt")
        self.key = Path(folder) / (name + ".key")


class Authority:
    """Signs certificates in files of `folder`."""

    def __init__(self, folder: Path, name: str = "ca"):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.own = Certificate(self.folder, name)
        self.cert = self.own.cert
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 30,
                "-subj", "/CN=%s of a test" % name, "-keyout", self.own.key, "-out", self.own.cert)

    def issue(self, name: str, common_name: str = "localhost", names: str = "DNS:localhost,IP:127.0.0.1",
              days: int = 30) -> Certificate:
        """Replaces the files of `name` when there are any. With `days` below 0 the certificate has expired."""
        made = Certificate(self.folder, name)
        request, extensions = self.folder / (name + ".csr"), self.folder / (name + ".ext")
        extensions.write_text("subjectAltName=%s\n" % names)
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-subj", "/CN=" + common_name, "-keyout", made.key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.own.cert, "-CAkey", self.own.key, "-CAcreateserial",
                "-days", days, "-extfile", extensions, "-out", made.cert)
        made.key.chmod(0o600)
        return made
