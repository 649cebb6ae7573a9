"""Skills: folders of know-how that an agent loads when it needs them, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    cloud={
        "list_skills_in_gcs_dir": "list_skills_in_dir",
        "load_skill_from_gcs_dir": "load_skill_from_dir",
    },
)
