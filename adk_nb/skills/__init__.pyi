from adk_nb.skills.catalog import SkillCatalog as SkillCatalog
from adk_nb.skills.folder import list_skills_in_dir as list_skills_in_dir
from adk_nb.skills.folder import load_skill_from_dir as load_skill_from_dir
from adk_nb.skills.folder import load_skills_from_dir as load_skills_from_dir
from adk_nb.skills.models import Frontmatter as Frontmatter
from adk_nb.skills.models import Resources as Resources
from adk_nb.skills.models import Script as Script
from adk_nb.skills.models import Skill as Skill
