"""Skills: folders of know-how that an agent loads when it needs them, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "Frontmatter": "adk_nb.skills.models",
        "Resources": "adk_nb.skills.models",
        "Script": "adk_nb.skills.models",
        "Skill": "adk_nb.skills.models",
        "SkillCatalog": "adk_nb.skills.catalog",
        "list_skills_in_dir": "adk_nb.skills.folder",
        "load_skill_from_dir": "adk_nb.skills.folder",
        "load_skills_from_dir": "adk_nb.skills.folder",
    },
    cloud={
        "list_skills_in_gcs_dir": "list_skills_in_dir",
        "load_skill_from_gcs_dir": "load_skill_from_dir",
    },
)
