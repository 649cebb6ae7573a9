"""Names of sessions in lines that are typed."""

import shlex


def quoted(name: str) -> str:
    """`name` as it is typed after a magic, so that it comes back equal."""
    # shlex leaves `=` bare, which makes a `key=value` there.
    return "'" + name.replace("'", "'\"'\"'") + "'" if "=" in name else shlex.quote(name)
