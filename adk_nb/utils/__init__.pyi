from adk_nb.utils import instructions_utils as instructions_utils
