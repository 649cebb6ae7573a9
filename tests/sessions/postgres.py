"""A PostgreSQL of the tests' own, in a folder that goes with it."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.late import late

psycopg = late("psycopg")


class Postgres:
    """A server on a Unix socket alone. As root, it runs as the user that Debian's package made for it."""

    def __init__(self) -> None:
        paths = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        assert paths, "the tests of PostgreSQL need Debian's package: apt-get install postgresql"
        self._bin = paths[-1].parent
        self._user = "postgres" if os.getuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="adk-nb-pg-", dir="/tmp"))
        if self._user:
            shutil.chown(self.folder, self._user)
        self._run(self._bin / "initdb", "-D", self._data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync")
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def url(self, driver: str = "psycopg") -> str:
        return f"postgresql+{driver}://tester@/postgres?host={self.folder}"

    def start(self) -> None:
        """Returns once it takes connections."""
        log = self.folder / "log"
        settings = [f"unix_socket_directories={self.folder}", "listen_addresses=", "fsync=off", "max_connections=200"]
        flags = [token for setting in settings for token in ("-c", setting)]
        with log.open("ab") as out:
            self._server = subprocess.Popen(
                [self._bin / "postgres", "-D", self._data, *flags], stdout=out, stderr=out, user=self._user, cwd="/"
            )
        ready = [self._bin / "pg_isready", "-q", "-h", self.folder, "-d", "postgres"]
        for _ in range(600):
            if subprocess.run(ready, timeout=30).returncode == 0:
                return
            try:
                self._server.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
            break
        raise AssertionError(log.read_text())

    def stop(self) -> None:
        """Ends at once what is connected."""
        if self._server:
            self._server.send_signal(2)  # SIGINT: fast shutdown
            self._server.wait(60)
            self._server = None

    def sql(self, *statements: str) -> list[tuple[object, ...]]:
        """The rows of the last of them."""
        with psycopg.connect(f"host={self.folder} user=tester dbname=postgres", autocommit=True) as db:
            for statement in statements:
                execute = db.execute(statement)
            return execute.fetchall() if execute.description else []

    def empty(self) -> str:
        """Forget all tables; the URL."""
        self.sql("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
        return self.url()

    def _run(self, *args: object) -> None:
        output = subprocess.run([str(arg) for arg in args], capture_output=True, text=True, user=self._user, cwd="/")
        assert output.returncode == 0, output.stdout + output.stderr


@contextmanager
def running() -> Iterator[Postgres]:
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.folder)
