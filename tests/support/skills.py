"""Skills on the disk, for tests."""

from pathlib import Path

REPORT = "import sys\n\nprint('report', *sys.argv[1:])\n"


def write_skill(
    folder: Path, name: str = "trip-budget", text: str | None = None, files: dict[str, str | bytes] | None = None
) -> Path:
    """A folder of that name with a SKILL.md, and these files; text None: a short valid one."""
    skill = folder / name
    skill.mkdir(parents=True, exist_ok=True)
    content = f"---\nname: {name}\ndescription: Plans {name}.\n---\nDo it in steps.\n" if text is None else text
    (skill / "SKILL.md").write_text(content, encoding="utf-8")
    for path, source in (files or {}).items():
        (skill / path).parent.mkdir(parents=True, exist_ok=True)
        data = source if isinstance(source, bytes) else source.encode()
        (skill / path).write_bytes(data)
    return skill
